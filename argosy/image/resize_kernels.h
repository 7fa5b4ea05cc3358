#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/image/resize_weights.h"

// Internal to the room: the two passes of resampling. u8 sums are in fixed point of kFractionBits;
// every variant gives the same bits.
namespace argosy::image::detail {

/// So many rows share one reading of the weights of columns.
inline constexpr int kRowsAtOnce = 8;
using SourceRows = std::array<const uint8_t*, kRowsAtOnce>;
using ResultRows = std::array<uint8_t*, kRowsAtOnce>;

/// result[i] = sum over k of weights[k] × rows[k][i], for n channels side by side.
void weigh_rows(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result);
void weigh_rows(
    const float* const* rows, const double* weights, int count, int64_t n, float* result);

/// Each new pixel of so many rows from old ones of the same row. 1 to 4 channels.
void weigh_columns(const SourceRows& rows,
                   int row_count,
                   const Taps<int32_t>& taps,
                   int channels,
                   const ResultRows& results);
void weigh_columns(const float* row, const Taps<double>& taps, int channels, float* result);

/// The same by AVX-512's sums of four products of bytes (VNNI), with each weight cut into three
/// bytes, and its free choice of bytes (VBMI).
[[nodiscard]] bool has_byte_dot();

/// What weigh_columns reads, laid out for these instructions.
class ByteDotColumns final {
 public:
  /// False: the machine has them not, or 16 new channels side by side need more than 64 bytes of
  /// old ones (a picture that shrinks to a third or less).
  [[nodiscard]] bool plan(const Taps<int32_t>& taps, int channels);
  void weigh(const SourceRows& rows, int row_count, const ResultRows& results) const;

 private:
  /// Four old bytes for each of 16 new ones, and what they are multiplied with.
  struct alignas(64) Step {
    std::array<uint32_t, 16> choice;  ///< of bytes behind `begin`
    std::array<uint32_t, 16> low;
    std::array<uint32_t, 16> middle;
    std::array<uint32_t, 16> high;
    uint64_t read = 0;  ///< which bytes behind `begin` there are
    int64_t begin = 0;  ///< first byte of the row
  };

  std::vector<Step> steps_{};  ///< per_group_ each for 16 channels
  int per_group_ = 0;
  int64_t row_bytes_ = 0;  ///< of a new row
};

/// As weigh_rows of u8, only where has_byte_dot().
void weigh_rows_byte_dot(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result);

}  // namespace argosy::image::detail
