#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "argosy/image/resize_kernels.h"

// Internal to the room: the passes of resize_kernels.h by four products of bytes in one
// instruction.
namespace argosy::image::detail {

/// True if this CPU has AVX-512's sums of four products of bytes (VNNI), for which each weight is
/// cut into three bytes, and its free choice of bytes (VBMI).
[[nodiscard]] bool has_byte_dot();

/// Computes weigh_columns by these instructions.
class ByteDotColumns final {
 public:
  /// False: the CPU lacks them, or 16 new channels side by side need more than 128 old bytes (a
  /// picture that shrinks to a sixth or less).
  [[nodiscard]] bool plan(const Taps<int32_t>& taps, int channels);
  void weigh(const SourceRows& rows, int row_count, const ResultRows& results) const;

  /// Four old bytes for each of 16 new ones, and their factors.
  struct alignas(64) Step {
    std::array<uint32_t, 16> choice;  ///< positions of bytes after `begin`
    std::array<uint32_t, 16> low;
    std::array<uint32_t, 16> middle;
    std::array<uint32_t, 16> high;
    uint64_t near = 0;  ///< the bytes to read among the 64 from `begin`
    uint64_t far = 0;   ///< the bytes to read among the next 64
    int64_t begin = 0;  ///< first byte of the row
  };

 private:
  std::vector<Step> steps_{};  ///< per_group_ of them for 16 channels
  int per_group_ = 0;
  bool far_ = false;       ///< some step reads more than 64 bytes
  int64_t row_bytes_ = 0;  ///< bytes of a new row
};

/// Computes weigh_rows of u8. Call it only if has_byte_dot().
void weigh_rows_byte_dot(
    const uint8_t* const* rows, const int32_t* weights, int count, int64_t n, uint8_t* result);

}  // namespace argosy::image::detail
