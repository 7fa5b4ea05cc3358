#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace argosy::transport {

/// Where in a training a collective belongs: the backward pass `pass` before update `update`, both
/// from 1. All ranks must be at the same place, with the same parameters frozen. 0: at none.
struct TrainingPlace {
  uint32_t update = 0;
  uint32_t pass = 0;
  uint32_t frozen = 0;  ///< a digest of which parameters are; 0: none

  friend bool operator==(const TrainingPlace&, const TrainingPlace&) = default;
};

/// Element types of the collectives. kBool is one byte, 0 or 1.
enum class DType : uint8_t { kF32, kF64, kF16, kBf16, kI8, kU8, kI32, kI64, kBool };

/// How values of several ranks become one. kBand, kBor and kBxor are for integers and bool.
/// For kBool, kSum and kMax are "any", kProduct and kMin are "all"; kAvg is refused.
/// kMin and kMax of floats: a NaN of any rank wins, as in torch::max.
enum class ReduceOp : uint8_t { kSum, kAvg, kMin, kMax, kProduct, kBand, kBor, kBxor };

[[nodiscard]] size_t size_of(DType dtype);
[[nodiscard]] std::string_view to_string(DType dtype);
[[nodiscard]] std::string_view to_string(ReduceOp op);
/// Whether `op` is defined for `dtype`.
[[nodiscard]] bool is_defined(ReduceOp op, DType dtype);

}  // namespace argosy::transport
