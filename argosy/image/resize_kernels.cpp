#include "argosy/image/resize_kernels.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/simd.h"

namespace argosy::image::detail {
namespace {

constexpr int32_t kHalf = 1 << (kFractionBits - 1);

ARGOSY_KERNEL_INLINE uint8_t to_u8(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

/// Channels of a pixel, as a vector which holds those of four rows.
constexpr int kLanes = 16;
using Bytes = uint8_t __attribute__((vector_size(kLanes)));
using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

/// The pixel at `from`: 3 or 4 channels in 4 bytes, nothing read behind it.
template <int kChannels>
ARGOSY_KERNEL_INLINE uint32_t pixel(const uint8_t* from, bool last) {
  uint32_t value = 0;
  if (kChannels == 4 || !last) {
    std::memcpy(&value, from, 4);
  } else {
    std::memcpy(&value, from, kChannels);
  }
  return value;
}

/// Four rows at once, one new pixel after another.
template <int kChannels>
ARGOSY_KERNEL_INLINE void columns_of_four(const uint8_t* const* rows,
                                          const Taps<int32_t>& taps,
                                          int last,
                                          uint8_t* const* results) {
  for (int i = 0; i < taps.size(); ++i) {
    const int first = taps.first[static_cast<size_t>(i)];
    const int count = taps.count[static_cast<size_t>(i)];
    const int32_t* weights = taps.of(i);
    Ints sum = Ints{} + kHalf;
    for (int k = 0; k < count; ++k) {
      const int64_t at = int64_t{first + k} * kChannels;
      const bool at_last = first + k == last;
      const std::array<uint32_t, 4> pixels{pixel<kChannels>(rows[0] + at, at_last),
                                           pixel<kChannels>(rows[1] + at, at_last),
                                           pixel<kChannels>(rows[2] + at, at_last),
                                           pixel<kChannels>(rows[3] + at, at_last)};
      Bytes bytes;
      std::memcpy(&bytes, pixels.data(), sizeof bytes);
      sum += __builtin_convertvector(bytes, Ints) * weights[k];
    }
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < kChannels; ++c) {
        results[r][int64_t{i} * kChannels + c] = to_u8(sum[r * 4 + c]);
      }
    }
  }
}

template <int kChannels>
ARGOSY_KERNEL_INLINE void columns_of_one(const uint8_t* row,
                                         const Taps<int32_t>& taps,
                                         uint8_t* result) {
  for (int i = 0; i < taps.size(); ++i, result += kChannels) {
    const uint8_t* from = row + int64_t{taps.first[static_cast<size_t>(i)]} * kChannels;
    const int32_t* weights = taps.of(i);
    std::array<int32_t, kChannels> sum;
    sum.fill(kHalf);
    for (int k = 0; k < taps.count[static_cast<size_t>(i)]; ++k, from += kChannels) {
      for (int c = 0; c < kChannels; ++c) {
        sum[static_cast<size_t>(c)] += weights[k] * from[c];
      }
    }
    for (int c = 0; c < kChannels; ++c) {
      result[c] = to_u8(sum[static_cast<size_t>(c)]);
    }
  }
}

template <int kChannels>
ARGOSY_KERNEL_INLINE void columns(const SourceRows& rows,
                                  int row_count,
                                  const Taps<int32_t>& taps,
                                  const ResultRows& results) {
  int r = 0;
  if constexpr (kChannels >= 3) {
    int last = 0;  // old pixel that is read
    for (int i = 0; i < taps.size(); ++i) {
      last = std::max(last,
                      taps.first[static_cast<size_t>(i)] + taps.count[static_cast<size_t>(i)] - 1);
    }
    for (; r + 4 <= row_count; r += 4) {
      columns_of_four<kChannels>(rows.data() + r, taps, last, results.data() + r);
    }
  }
  for (; r < row_count; ++r) {
    columns_of_one<kChannels>(rows[static_cast<size_t>(r)], taps, results[static_cast<size_t>(r)]);
  }
}

}  // namespace

ARGOSY_KERNEL void weigh_rows(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Ints sum = Ints{} + kHalf;
    for (int k = 0; k < count; ++k) {
      Bytes bytes;
      std::memcpy(&bytes, rows[k] + i, sizeof bytes);
      sum += __builtin_convertvector(bytes, Ints) * weights[k];
    }
    sum >>= kFractionBits;
    sum = sum < 0 ? Ints{} : sum;
    sum = sum > 255 ? Ints{} + 255 : sum;
    const Bytes bytes = __builtin_convertvector(sum, Bytes);
    std::memcpy(result + i, &bytes, sizeof bytes);
  }
  for (; i < n; ++i) {
    int32_t sum = kHalf;
    for (int k = 0; k < count; ++k) {
      sum += weights[k] * rows[k][i];
    }
    result[i] = to_u8(sum);
  }
}

ARGOSY_KERNEL void weigh_rows(
    const float* const* rows, const double* weights, int count, int64_t n, float* result) {
  constexpr int64_t kRun = 16;
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t some = std::min(kRun, n - i);
    std::array<double, kRun> sum{};
    for (int k = 0; k < count; ++k) {
      for (int64_t j = 0; j < some; ++j) {
        sum[static_cast<size_t>(j)] += static_cast<double>(rows[k][i + j]) * weights[k];
      }
    }
    for (int64_t j = 0; j < some; ++j) {
      result[i + j] = static_cast<float>(sum[static_cast<size_t>(j)]);
    }
  }
}

ARGOSY_KERNEL void weigh_columns(const SourceRows& rows,
                                 int row_count,
                                 const Taps<int32_t>& taps,
                                 int channels,
                                 const ResultRows& results) {
  switch (channels) {
    case 1:
      return columns<1>(rows, row_count, taps, results);
    case 2:
      return columns<2>(rows, row_count, taps, results);
    case 3:
      return columns<3>(rows, row_count, taps, results);
    default:
      return columns<4>(rows, row_count, taps, results);
  }
}

ARGOSY_KERNEL void weigh_columns(const float* row,
                                 const Taps<double>& taps,
                                 int channels,
                                 float* result) {
  for (int i = 0; i < taps.size(); ++i, result += channels) {
    const float* from = row + int64_t{taps.first[static_cast<size_t>(i)]} * channels;
    const double* weights = taps.of(i);
    std::array<double, 4> sum{};
    for (int k = 0; k < taps.count[static_cast<size_t>(i)]; ++k, from += channels) {
      for (int c = 0; c < channels; ++c) {
        sum[static_cast<size_t>(c)] += static_cast<double>(from[c]) * weights[k];
      }
    }
    for (int c = 0; c < channels; ++c) {
      result[c] = static_cast<float>(sum[static_cast<size_t>(c)]);
    }
  }
}

}  // namespace argosy::image::detail
