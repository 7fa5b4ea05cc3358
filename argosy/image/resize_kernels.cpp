#include "argosy/image/resize_kernels.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/simd.h"

namespace argosy::image::detail {
namespace {

constexpr int32_t kHalf = 1 << (kFractionBits - 1);
/// Taps that one expression adds up; more go by way of an array of sums.
constexpr int kTaps = 4;

ARGOSY_KERNEL_INLINE uint8_t to_u8(int32_t sum) {
  sum >>= kFractionBits;
  sum = sum < 0 ? 0 : sum;
  return static_cast<uint8_t>(sum > 255 ? 255 : sum);
}

/// Four sources and their weights; those that are missing count as 0 times the last.
struct Four {
  const uint8_t* from[kTaps];
  int32_t weight[kTaps];

  /// at(k): source k.
  template <typename At>
  ARGOSY_KERNEL_INLINE Four(const At& at, const int32_t* weights, int first, int count) {
    for (int k = 0; k < kTaps; ++k) {
      from[k] = at(std::min(first + k, count - 1));
      weight[k] = first + k < count ? weights[first + k] : 0;
    }
  }
  ARGOSY_KERNEL_INLINE int32_t sum(int64_t i) const {
    return weight[0] * from[0][i] + weight[1] * from[1][i] + weight[2] * from[2][i] +
           weight[3] * from[3][i];
  }
};

/// n sums; kMost is at least n, and known to the compiler.
template <int64_t kMost, typename At>
ARGOSY_KERNEL_INLINE void weigh(
    const At& at, const int32_t* weights, int count, int64_t n, uint8_t* __restrict result) {
  if (count <= kTaps) {
    const Four four(at, weights, 0, count);
    for (int64_t i = 0; i < n; ++i) {
      result[i] = to_u8(kHalf + four.sum(i));
    }
    return;
  }
  int32_t sums[kMost];
  for (int64_t i = 0; i < n; ++i) {
    sums[i] = kHalf;
  }
  for (int k = 0; k < count; k += kTaps) {
    const Four four(at, weights, k, count);
    for (int64_t i = 0; i < n; ++i) {
      sums[i] += four.sum(i);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    result[i] = to_u8(sums[i]);
  }
}

// Columns: 16 rows are turned, so that what shares a weight lies side by side; then it is the sum
// of rows; and turned back. Turning costs a quarter of the whole.
static_assert(kRowsAtOnce == 16);
using Bytes = uint8_t __attribute__((vector_size(16)));
using Block = std::array<Bytes, 16>;

/// Of 256 bytes those of the halves by turns: bit 7 of a place becomes bit 0. Four times exchanges
/// rows and columns.
ARGOSY_KERNEL_INLINE Block shuffled(const Block& in) {
  Block out;
  for (size_t i = 0; i < 8; ++i) {
    out[2 * i] = __builtin_shufflevector(
        in[i], in[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    out[2 * i + 1] = __builtin_shufflevector(
        in[i], in[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  return out;
}

ARGOSY_KERNEL_INLINE Block turned(const Block& in) {
  return shuffled(shuffled(shuffled(shuffled(in))));
}

/// Bytes [begin, end) of the rows, each column of 16 side by side.
ARGOSY_KERNEL_INLINE void turn(const SourceRows& rows, int64_t begin, int64_t end, uint8_t* to) {
  for (int64_t i = begin; i < end; i += 16, to += sizeof(Block)) {
    Block block{};
    const int64_t left = end - i;
    for (size_t r = 0; r < block.size(); ++r) {
      if (left >= 16) {
        std::memcpy(&block[r], rows[r] + i, 16);
      } else {
        std::memcpy(&block[r], rows[r] + i, static_cast<size_t>(left));
      }
    }
    block = turned(block);
    std::memcpy(to, &block, sizeof block);
  }
}

ARGOSY_KERNEL_INLINE void turn_back(const uint8_t* from,
                                    int64_t bytes,
                                    int row_count,
                                    const ResultRows& rows) {
  for (int64_t i = 0; i < bytes; i += 16, from += sizeof(Block)) {
    Block block;
    std::memcpy(&block, from, sizeof block);
    block = turned(block);
    for (size_t r = 0; r < static_cast<size_t>(row_count); ++r) {
      std::memcpy(rows[r] + i, &block[r], 16);
    }
  }
}

int64_t blocks_of(int64_t bytes) {
  return (bytes + 15) / 16 * static_cast<int64_t>(sizeof(Block));
}

}  // namespace

ARGOSY_KERNEL void weigh_rows(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result) {
  constexpr int64_t kRun = 256;
  for (int64_t i = 0; i < n; i += kRun) {
    const auto at = [&](int k) ARGOSY_KERNEL_LAMBDA { return rows[k] + i; };
    weigh<kRun>(at, weights, count, std::min(kRun, n - i), result + i);
  }
}

ARGOSY_KERNEL void weigh_rows(
    const float* const* rows, const double* weights, int count, int64_t n, float* result) {
  constexpr int64_t kRun = 64;
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t some = std::min(kRun, n - i);
    double sums[kRun] = {};
    for (int k = 0; k < count; ++k) {
      const float* row = rows[k] + i;
      for (int64_t j = 0; j < some; ++j) {
        sums[j] += static_cast<double>(row[j]) * weights[k];
      }
    }
    for (int64_t j = 0; j < some; ++j) {
      result[i + j] = static_cast<float>(sums[j]);
    }
  }
}

ARGOSY_KERNEL void weigh_columns(const SourceRows& rows,
                                 int row_count,
                                 int width,
                                 const Taps<int32_t>& taps,
                                 int channels,
                                 const ResultRows& results,
                                 ColumnScratch& scratch) {
  const int64_t old_bytes = int64_t{width} * channels;
  const int64_t new_bytes = int64_t{taps.size()} * channels;
  scratch.source.resize(static_cast<size_t>(blocks_of(old_bytes)));
  scratch.result.resize(static_cast<size_t>(blocks_of(new_bytes)));
  SourceRows sixteen = rows;
  std::fill(sixteen.begin() + row_count, sixteen.end(), rows[0]);
  turn(sixteen, 0, old_bytes, scratch.source.data());
  const int64_t pixel = int64_t{channels} * 16;
  uint8_t* to = scratch.result.data();
  for (int i = 0; i < taps.size(); ++i) {
    const uint8_t* from = scratch.source.data() + taps.first[static_cast<size_t>(i)] * pixel;
    for (int64_t c = 0; c < pixel; c += 16, to += 16) {
      const auto at = [&](int k) ARGOSY_KERNEL_LAMBDA { return from + k * pixel + c; };
      weigh<16>(at, taps.of(i), taps.count[static_cast<size_t>(i)], 16, to);
    }
  }
  turn_back(scratch.result.data(), new_bytes, row_count, results);
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
