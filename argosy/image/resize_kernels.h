#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/image/resize_weights.h"

// Internal to the room: the two passes of resampling. u8 sums are in fixed point of kFractionBits;
// every variant gives the same bits.
namespace argosy::image::detail {

/// Number of rows that share one reading of the columns' weights.
inline constexpr int kRowsAtOnce = 16;
using SourceRows = std::array<const uint8_t*, kRowsAtOnce>;
/// Each has room for a multiple of 16 bytes.
using ResultRows = std::array<uint8_t*, kRowsAtOnce>;

/// Computes result[i] = sum over k of weights[k] × rows[k][i], for n channels side by side.
void weigh_rows(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result);
void weigh_rows(
    const float* const* rows, const double* weights, int count, int64_t n, float* result);

/// Memory that weigh_columns keeps for its next call.
struct ColumnScratch {
  std::vector<uint8_t> source{};
  std::vector<uint8_t> result{};
};

/// Makes the new pixels of row_count rows from the old ones of the same row. A row has `width` old
/// pixels.
void weigh_columns(const SourceRows& rows,
                   int row_count,
                   int width,
                   const Taps<int32_t>& taps,
                   int channels,
                   const ResultRows& results,
                   ColumnScratch& scratch);
void weigh_columns(const float* row, const Taps<double>& taps, int channels, float* result);

}  // namespace argosy::image::detail
