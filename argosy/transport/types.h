#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace argosy::transport {

/// The place of a collective in a training: the backward pass `pass` before update `update`, or the
/// step of an optimizer. Both count from 1; without an update it belongs to no training. All ranks
/// must be at the same place, with the same parameters frozen.
struct TrainingPlace {
  uint32_t update = 0;
  uint32_t pass = 0;    ///< 0: in optimizer.step(); `update` then counts the optimizer's steps
  uint32_t frozen = 0;  ///< a digest of the frozen parameters; 0: no parameter is frozen
  uint32_t layout = 0;  ///< a digest of the order in which their elements lie in memory
  uint32_t unit = 0;    ///< of divided parameters that a gather makes whole, from 1 on

  friend bool operator==(const TrainingPlace&, const TrainingPlace&) = default;
};

/// Element types of the collectives. kBool is one byte, 0 or 1.
enum class DType : uint8_t { kF32, kF64, kF16, kBf16, kI8, kU8, kI32, kI64, kBool };

/// How the values of all ranks become one. kBand, kBor and kBxor are for integers and bool.
/// For kBool, kSum and kMax mean "any", kProduct and kMin mean "all", and kAvg is refused. In kMin
/// and kMax of floats a NaN of any rank wins, as in torch::max.
enum class ReduceOp : uint8_t { kSum, kAvg, kMin, kMax, kProduct, kBand, kBor, kBxor };

[[nodiscard]] size_t size_of(DType dtype);
[[nodiscard]] std::string_view to_string(DType dtype);
[[nodiscard]] std::string_view to_string(ReduceOp op);
/// True if `op` is defined for `dtype`.
[[nodiscard]] bool is_defined(ReduceOp op, DType dtype);

}  // namespace argosy::transport
