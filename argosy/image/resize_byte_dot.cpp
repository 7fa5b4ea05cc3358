#include "argosy/image/resize_kernels.h"

// Measured on an EPYC of 2023 (Zen 4), 380 × 380 × 3 to 224 × 224: see docs/reference/
// transforms_exactness.md. With vector code for all machines the same takes two to three times as
// long, since each product of a byte and a weight of 22 bits takes a lane of 32.
#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define ARGOSY_BYTE_DOT \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))

namespace argosy::image::detail {
namespace {

constexpr int kGroup = 16;  ///< new channels that are made together
constexpr int kTaps = 4;    ///< old ones that one instruction multiplies
constexpr int kBytes = 64;  ///< of a register

/// weight = low + 256 × middle + 65536 × high, each a signed byte.
struct Cut {
  uint8_t low, middle, high;
};

constexpr Cut cut(int32_t weight) {
  const auto low = static_cast<int8_t>(weight);
  const int32_t rest = (weight - low) >> 8;
  const auto middle = static_cast<int8_t>(rest);
  const auto high = static_cast<int8_t>((rest - middle) >> 8);
  return {static_cast<uint8_t>(low), static_cast<uint8_t>(middle), static_cast<uint8_t>(high)};
}

/// The bytes of four weights, as one lane of a register.
struct Lane {
  uint32_t low = 0, middle = 0, high = 0;
};

Lane lane_of(const int32_t* weights, int count) {
  Lane lane;
  for (int t = 0; t < std::min(count, kTaps); ++t) {
    const Cut bytes = cut(weights[t]);
    lane.low |= uint32_t{bytes.low} << (8 * t);
    lane.middle |= uint32_t{bytes.middle} << (8 * t);
    lane.high |= uint32_t{bytes.high} << (8 * t);
  }
  return lane;
}

/// Sums of products with the three bytes of the weights.
struct Sums {
  __m512i low, middle, high;
};

ARGOSY_BYTE_DOT inline Sums zero() {
  return {
      _mm512_set1_epi32(1 << (kFractionBits - 1)), _mm512_setzero_si512(), _mm512_setzero_si512()};
}

ARGOSY_BYTE_DOT inline void add(
    Sums& sums, __m512i pixels, __m512i low, __m512i middle, __m512i high) {
  sums.low = _mm512_dpbusd_epi32(sums.low, pixels, low);
  sums.middle = _mm512_dpbusd_epi32(sums.middle, pixels, middle);
  sums.high = _mm512_dpbusd_epi32(sums.high, pixels, high);
}

/// The sums without their fraction: -640 to 639.
ARGOSY_BYTE_DOT inline __m512i whole(const Sums& sums) {
  __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(sums.high, 8), sums.middle);
  sum = _mm512_add_epi32(_mm512_slli_epi32(sum, 8), sums.low);
  return _mm512_srai_epi32(sum, kFractionBits);
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
  const uint32_t next_pixel = static_cast<uint32_t>(channels) * 0x03020100U;
  Step* step = steps_.data();
  for (int64_t begin = 0; begin < row_bytes_; begin += kGroup) {
    const int64_t end = std::min(row_bytes_, begin + kGroup);
    const auto one = static_cast<int>(begin / channels);
    const auto last = static_cast<int>((end - 1) / channels);
    const auto [low, high] =
        std::minmax(taps.first[static_cast<size_t>(one)], taps.first[static_cast<size_t>(last)]);
    for (int s = 0; s < per_group_; ++s, ++step) {
      std::memset(static_cast<void*>(step), 0, sizeof *step);
      step->begin = int64_t{low + s * kTaps} * channels;
      int bytes = 0;
      for (int i = one; i <= last; ++i) {
        const int count = taps.count[static_cast<size_t>(i)] - s * kTaps;
        if (count <= 0) {
          continue;
        }
        const int offset = (taps.first[static_cast<size_t>(i)] - low) * channels;
        bytes = std::max(bytes, offset + std::min(count, kTaps) * channels);
        if (bytes > kBytes) {
          return false;
        }
        const Lane lane = lane_of(taps.of(i) + s * kTaps, count);
        const uint32_t choice = next_pixel + static_cast<uint32_t>(offset) * 0x01010101U;
        const int64_t place = int64_t{i} * channels - begin;
        for (int c = 0; c < channels; ++c) {
          const int64_t j = place + c;
          if (j >= 0 && j < end - begin) {
            const auto at = static_cast<size_t>(j);
            step->choice[at] = choice + static_cast<uint32_t>(c) * 0x01010101U;
            step->low[at] = lane.low;
            step->middle[at] = lane.middle;
            step->high[at] = lane.high;
          }
        }
      }
      step->read = bytes == kBytes ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1;
    }
  }
  return true;
}

namespace {

template <int kRows, typename Step>
ARGOSY_BYTE_DOT inline void weigh_group(const Step* steps,
                                        int count,
                                        const uint8_t* const* rows,
                                        __mmask16 write,
                                        int64_t at,
                                        uint8_t* const* results) {
  Sums sums[kRows];
  for (Sums& sum : sums) {
    sum = zero();
  }
  for (int s = 0; s < count; ++s) {
    const __m512i choice = _mm512_load_si512(steps[s].choice.data());
    const __m512i low = _mm512_load_si512(steps[s].low.data());
    const __m512i middle = _mm512_load_si512(steps[s].middle.data());
    const __m512i high = _mm512_load_si512(steps[s].high.data());
    for (int r = 0; r < kRows; ++r) {
      const __m512i bytes = _mm512_maskz_loadu_epi8(steps[s].read, rows[r] + steps[s].begin);
      add(sums[r], _mm512_permutexvar_epi8(choice, bytes), low, middle, high);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const __m512i sum = _mm512_max_epi32(whole(sums[r]), _mm512_setzero_si512());
    _mm_mask_storeu_epi8(results[r] + at, write, _mm512_cvtusepi32_epi8(sum));
  }
}

}  // namespace

ARGOSY_BYTE_DOT void ByteDotColumns::weigh(const SourceRows& rows,
                                           int row_count,
                                           const ResultRows& results) const {
  const Step* steps = steps_.data();
  for (int64_t at = 0; at < row_bytes_; at += kGroup, steps += per_group_) {
    const int64_t left = row_bytes_ - at;
    const auto write = static_cast<__mmask16>(left >= kGroup ? 0xFFFF : (1 << left) - 1);
    if (row_count == kRowsAtOnce) {
      weigh_group<kRowsAtOnce>(steps, per_group_, rows.data(), write, at, results.data());
    } else {
      for (int r = 0; r < row_count; ++r) {
        weigh_group<1>(steps, per_group_, rows.data() + r, write, at, results.data() + r);
      }
    }
  }
}

namespace {

/// 64 channels of four rows: which bytes of them there are.
template <bool kWhole>
ARGOSY_BYTE_DOT inline __m512i load(__mmask64 there, const uint8_t* from) {
  return kWhole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(there, from);
}

template <bool kWhole>
ARGOSY_BYTE_DOT inline void weigh_64(const uint8_t* const* rows,
                                     const Lane* lanes,
                                     int steps,
                                     int64_t at,
                                     __mmask64 there,
                                     uint8_t* result) {
  Sums sums[4] = {zero(), zero(), zero(), zero()};
  for (int s = 0; s < steps; ++s, rows += kTaps) {
    const __m512i a = load<kWhole>(there, rows[0] + at);
    const __m512i b = load<kWhole>(there, rows[1] + at);
    const __m512i c = load<kWhole>(there, rows[2] + at);
    const __m512i d = load<kWhole>(there, rows[3] + at);
    const __m512i low = _mm512_set1_epi32(static_cast<int>(lanes[s].low));
    const __m512i middle = _mm512_set1_epi32(static_cast<int>(lanes[s].middle));
    const __m512i high = _mm512_set1_epi32(static_cast<int>(lanes[s].high));
    const __m512i ab0 = _mm512_unpacklo_epi8(a, b);
    const __m512i ab1 = _mm512_unpackhi_epi8(a, b);
    const __m512i cd0 = _mm512_unpacklo_epi8(c, d);
    const __m512i cd1 = _mm512_unpackhi_epi8(c, d);
    add(sums[0], _mm512_unpacklo_epi16(ab0, cd0), low, middle, high);
    add(sums[1], _mm512_unpackhi_epi16(ab0, cd0), low, middle, high);
    add(sums[2], _mm512_unpacklo_epi16(ab1, cd1), low, middle, high);
    add(sums[3], _mm512_unpackhi_epi16(ab1, cd1), low, middle, high);
  }
  // Packing undoes the order that unpacking made, and clamps to 0 … 255.
  const __m512i left = _mm512_packs_epi32(whole(sums[0]), whole(sums[1]));
  const __m512i right = _mm512_packs_epi32(whole(sums[2]), whole(sums[3]));
  const __m512i bytes = _mm512_packus_epi16(left, right);
  if (kWhole) {
    _mm512_storeu_si512(result + at, bytes);
  } else {
    _mm512_mask_storeu_epi8(result + at, there, bytes);
  }
}

}  // namespace

ARGOSY_BYTE_DOT void weigh_rows_byte_dot(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result) {
  constexpr int kMostSteps = 16;
  if (count > kMostSteps * kTaps) {  // a picture that shrinks to a thirtieth
    return weigh_rows(rows, weights, count, n, result);
  }
  const int steps = (count + kTaps - 1) / kTaps;
  Lane lanes[kMostSteps];
  const uint8_t* padded[kMostSteps * kTaps];
  for (int s = 0; s < steps; ++s) {
    lanes[s] = lane_of(weights + s * kTaps, count - s * kTaps);
  }
  for (int k = 0; k < steps * kTaps; ++k) {
    padded[k] = rows[std::min(k, count - 1)];  // times 0
  }
  int64_t at = 0;
  for (; at + kBytes <= n; at += kBytes) {
    weigh_64<true>(padded, lanes, steps, at, 0, result);
  }
  if (at < n) {
    weigh_64<false>(padded, lanes, steps, at, (uint64_t{1} << (n - at)) - 1, result);
  }
}

}  // namespace argosy::image::detail

#else  // other machines

#include "argosy/base/check.h"

namespace argosy::image::detail {

bool has_byte_dot() {
  return false;
}
bool ByteDotColumns::plan(const Taps<int32_t>&, int) {
  return false;
}
void ByteDotColumns::weigh(const SourceRows&, int, const ResultRows&) const {
  ARGOSY_INVARIANT(has_byte_dot(), "image.resize");
}
void weigh_rows_byte_dot(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result) {
  weigh_rows(rows, weights, count, n, result);
}

}  // namespace argosy::image::detail

#endif
