#include "argosy/image/resize_byte_dot.h"

// Four products of bytes in one instruction. The plain loops of resize_kernels.cpp take each
// product of a byte and a weight of 22 bits in a lane of 32, and turn the picture twice: measured,
// 380 × 380 × 3 bytes to 224 × 224 takes them five times as long
// (docs/reference/transforms_exactness.md).
#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define ARGOSY_BYTE_DOT \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))
#define ARGOSY_BYTE_DOT_INLINE ARGOSY_BYTE_DOT __attribute__((always_inline)) inline

namespace argosy::image::detail {
namespace {

constexpr int kGroup = 16;          ///< new channels that are made together
constexpr int kTaps = 4;            ///< old ones that one instruction multiplies
constexpr int kBytes = 64;          ///< of a register
constexpr int kReach = 2 * kBytes;  ///< one instruction chooses from two

/// The bytes of four weights, as one lane of a register: weight = low + 256 × middle + 65536 ×
/// high, each with a sign.
struct Lane {
  uint32_t low = 0, middle = 0, high = 0;
};

Lane lane_of(const int32_t* weights, int count) {
  Lane lane;
  for (int t = 0; t < std::min(count, kTaps); ++t) {
    const auto low = static_cast<int8_t>(weights[t]);
    const int32_t rest = (weights[t] - low) >> 8;
    const auto middle = static_cast<int8_t>(rest);
    const int32_t high = (rest - middle) >> 8;
    lane.low |= uint32_t{static_cast<uint8_t>(low)} << (8 * t);
    lane.middle |= uint32_t{static_cast<uint8_t>(middle)} << (8 * t);
    lane.high |= uint32_t{static_cast<uint8_t>(high)} << (8 * t);
  }
  return lane;
}

/// Weights of a step in registers.
struct Weights {
  __m512i low, middle, high;
};

/// Sums of products with the three bytes of the weights.
struct Sums {
  __m512i low, middle, high;
};

ARGOSY_BYTE_DOT_INLINE Sums nothing() {
  const __m512i zero = _mm512_setzero_si512();
  return {_mm512_set1_epi32(1 << (kFractionBits - 1)), zero, zero};
}

ARGOSY_BYTE_DOT_INLINE void add(Sums& sums, __m512i pixels, const Weights& weights) {
  sums.low = _mm512_dpbusd_epi32(sums.low, pixels, weights.low);
  sums.middle = _mm512_dpbusd_epi32(sums.middle, pixels, weights.middle);
  sums.high = _mm512_dpbusd_epi32(sums.high, pixels, weights.high);
}

/// The sums without their fraction: -640 to 639.
ARGOSY_BYTE_DOT_INLINE __m512i whole(const Sums& sums) {
  __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(sums.high, 8), sums.middle);
  sum = _mm512_add_epi32(_mm512_slli_epi32(sum, 8), sums.low);
  return _mm512_srai_epi32(sum, kFractionBits);
}

// ---- columns ----

/// A bit for each of so many bytes of a register.
constexpr uint64_t first_bytes(int count) {
  return count <= 0 ? 0 : count >= kBytes ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// A step in registers.
struct Held {
  Weights weights;
  __m512i choice;
  __mmask64 near, far;
  int64_t begin;
};

ARGOSY_BYTE_DOT_INLINE Held hold(const ByteDotColumns::Step& step) {
  return {{_mm512_load_si512(step.low.data()),
           _mm512_load_si512(step.middle.data()),
           _mm512_load_si512(step.high.data())},
          _mm512_load_si512(step.choice.data()),
          step.near,
          step.far,
          step.begin};
}

template <bool kFar>
ARGOSY_BYTE_DOT_INLINE void add(Sums& sums, const Held& step, const uint8_t* row) {
  const uint8_t* from = row + step.begin;
  const __m512i near = _mm512_maskz_loadu_epi8(step.near, from);
  if (kFar) {
    const __m512i far = _mm512_maskz_loadu_epi8(step.far, from + kBytes);
    add(sums, _mm512_permutex2var_epi8(near, step.choice, far), step.weights);
  } else {
    add(sums, _mm512_permutexvar_epi8(step.choice, near), step.weights);
  }
}

/// 16 channels of each row; the first kHeld of `count` steps stay in registers.
template <int kHeld, bool kFar>
ARGOSY_BYTE_DOT_INLINE void weigh_group(const ByteDotColumns::Step* steps,
                                        int count,
                                        const SourceRows& rows,
                                        int row_count,
                                        int64_t at,
                                        const ResultRows& results) {
  const Held first = hold(steps[0]);
  const Held second = hold(steps[kHeld - 1]);
  for (int r = 0; r < row_count; ++r) {
    const uint8_t* row = rows[static_cast<size_t>(r)];
    Sums sums = nothing();
    add<kFar>(sums, first, row);
    if (kHeld == 2) {
      add<kFar>(sums, second, row);
    }
    for (int s = kHeld; s < count; ++s) {
      add<kFar>(sums, hold(steps[s]), row);
    }
    const __m512i sum = _mm512_max_epi32(whole(sums), _mm512_setzero_si512());
    const __m128i bytes = _mm512_cvtusepi32_epi8(sum);
    std::memcpy(results[static_cast<size_t>(r)] + at, &bytes, sizeof bytes);
  }
}

// ---- rows ----

/// 64 channels of a row; `there` says which of them there are unless all are.
template <bool kWhole>
ARGOSY_BYTE_DOT_INLINE __m512i load(__mmask64 there, const uint8_t* from) {
  return kWhole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(there, from);
}

template <bool kWhole>
ARGOSY_BYTE_DOT_INLINE void weigh_64(const uint8_t* const* rows,
                                     const Lane* lanes,
                                     int steps,
                                     int64_t at,
                                     __mmask64 there,
                                     uint8_t* result) {
  Sums first = nothing(), second = nothing(), third = nothing(), fourth = nothing();
  for (int s = 0; s < steps; ++s, rows += kTaps) {
    const __m512i a = load<kWhole>(there, rows[0] + at);
    const __m512i b = load<kWhole>(there, rows[1] + at);
    const __m512i c = load<kWhole>(there, rows[2] + at);
    const __m512i d = load<kWhole>(there, rows[3] + at);
    const Weights weights{_mm512_set1_epi32(static_cast<int>(lanes[s].low)),
                          _mm512_set1_epi32(static_cast<int>(lanes[s].middle)),
                          _mm512_set1_epi32(static_cast<int>(lanes[s].high))};
    const __m512i ab_low = _mm512_unpacklo_epi8(a, b);
    const __m512i ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi8(c, d);
    const __m512i cd_high = _mm512_unpackhi_epi8(c, d);
    add(first, _mm512_unpacklo_epi16(ab_low, cd_low), weights);
    add(second, _mm512_unpackhi_epi16(ab_low, cd_low), weights);
    add(third, _mm512_unpacklo_epi16(ab_high, cd_high), weights);
    add(fourth, _mm512_unpackhi_epi16(ab_high, cd_high), weights);
  }
  // Packing undoes the order that unpacking made, and clamps to 0 … 255.
  const __m512i left = _mm512_packs_epi32(whole(first), whole(second));
  const __m512i right = _mm512_packs_epi32(whole(third), whole(fourth));
  const __m512i bytes = _mm512_packus_epi16(left, right);
  if (kWhole) {
    _mm512_storeu_si512(result + at, bytes);
  } else {
    _mm512_mask_storeu_epi8(result + at, there, bytes);
  }
}

}  // namespace

bool has_byte_dot() {
  static const bool has =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vnni");
  return has;
}

bool ByteDotColumns::plan(const Taps<int32_t>& taps, int channels) {
  if (!has_byte_dot()) {
    return false;
  }
  row_bytes_ = int64_t{taps.size()} * channels;
  per_group_ = (*std::max_element(taps.count.begin(), taps.count.end()) + kTaps - 1) / kTaps;
  const int64_t groups = (row_bytes_ + kGroup - 1) / kGroup;
  steps_.resize(static_cast<size_t>(groups * per_group_));
  far_ = false;
  const uint32_t next_pixel = static_cast<uint32_t>(channels) * 0x03020100U;
  Step* step = steps_.data();
  for (int64_t begin = 0; begin < row_bytes_; begin += kGroup) {
    const int64_t end = std::min(row_bytes_, begin + kGroup);
    const auto one = static_cast<int>(begin / channels);
    const auto last = static_cast<int>((end - 1) / channels);
    const int left = std::min(taps.first[static_cast<size_t>(one)],
                              taps.first[static_cast<size_t>(last)]);  // last: when flipped
    for (int s = 0; s < per_group_; ++s, ++step) {
      std::memset(static_cast<void*>(step), 0, sizeof *step);
      step->begin = int64_t{left + s * kTaps} * channels;
      int bytes = 0;
      for (int i = one; i <= last; ++i) {
        const int count = taps.count[static_cast<size_t>(i)] - s * kTaps;
        if (count <= 0) {
          continue;
        }
        const int offset = (taps.first[static_cast<size_t>(i)] - left) * channels;
        bytes = std::max(bytes, offset + std::min(count, kTaps) * channels);
        if (bytes > kReach) {
          return false;
        }
        far_ = far_ || bytes > kBytes;
        const Lane lane = lane_of(taps.of(i) + ptrdiff_t{s} * kTaps, count);
        const int64_t place = int64_t{i} * channels - begin;
        for (int c = 0; c < channels; ++c) {
          if (place + c < 0 || place + c >= kGroup) {
            continue;
          }
          const auto at = static_cast<size_t>(place + c);
          step->choice[at] = next_pixel + static_cast<uint32_t>(offset + c) * 0x01010101U;
          step->low[at] = lane.low;
          step->middle[at] = lane.middle;
          step->high[at] = lane.high;
        }
      }
      step->near = first_bytes(bytes);
      step->far = first_bytes(bytes - kBytes);
    }
  }
  return true;
}

ARGOSY_BYTE_DOT void ByteDotColumns::weigh(const SourceRows& rows,
                                           int row_count,
                                           const ResultRows& results) const {
  const Step* steps = steps_.data();
  for (int64_t at = 0; at < row_bytes_; at += kGroup, steps += per_group_) {
    if (per_group_ == 1 && !far_) {
      weigh_group<1, false>(steps, 1, rows, row_count, at, results);
    } else if (far_) {
      weigh_group<1, true>(steps, per_group_, rows, row_count, at, results);
    } else {
      weigh_group<2, false>(steps, per_group_, rows, row_count, at, results);
    }
  }
}

ARGOSY_BYTE_DOT void weigh_rows_byte_dot(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result) {
  constexpr int kMostSteps = 16;
  if (count > kMostSteps * kTaps) {  // a picture that shrinks to a thirtieth
    return weigh_rows(rows, weights, count, n, result);
  }
  const int steps = (count + kTaps - 1) / kTaps;
  Lane lanes[kMostSteps];
  const uint8_t* sources[kMostSteps * kTaps];
  for (int s = 0; s < steps; ++s) {
    lanes[s] = lane_of(weights + ptrdiff_t{s} * kTaps, count - s * kTaps);
  }
  for (int k = 0; k < steps * kTaps; ++k) {
    sources[k] = rows[std::min(k, count - 1)];  // those that are missing: 0 times the last
  }
  int64_t at = 0;
  for (; at + kBytes <= n; at += kBytes) {
    weigh_64<true>(sources, lanes, steps, at, 0, result);
  }
  if (at < n) {
    weigh_64<false>(sources, lanes, steps, at, (uint64_t{1} << (n - at)) - 1, result);
  }
}

}  // namespace argosy::image::detail

#else  // other machines

namespace argosy::image::detail {

bool has_byte_dot() {
  return false;
}
bool ByteDotColumns::plan(const Taps<int32_t>&, int) {
  return false;
}
void ByteDotColumns::weigh(const SourceRows&, int, const ResultRows&) const {}
void weigh_rows_byte_dot(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result) {
  weigh_rows(rows, weights, count, n, result);
}

}  // namespace argosy::image::detail

#endif
