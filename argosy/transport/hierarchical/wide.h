#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/transport/types.h"

// Internal to the room.
namespace argosy::transport {

/// Data that is summed in several steps, in a type that loses nothing between them: 16-bit floats
/// in f32, averages of integers in i64, everything else as it is. An average is divided at the end.
class Wide final {
 public:
  Wide(void* data, int64_t count, DType dtype, ReduceOp op, int ranks);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] ReduceOp op() const { return op_; }  ///< of each step
  [[nodiscard]] int64_t bytes_of(int64_t count) const {
    return count * static_cast<int64_t>(size_of(dtype_));
  }
  /// Writes the result where the data came from.
  void finish();

 private:
  void* const narrow_;
  const int64_t count_;
  const DType narrow_dtype_;
  const ReduceOp wanted_;
  const int ranks_;
  DType dtype_;
  ReduceOp op_;
  std::vector<std::byte> storage_{};
  std::byte* data_;
};

}  // namespace argosy::transport
