#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/transport/bytes.h"
#include "argosy/transport/transport.h"
#include "argosy/transport/types.h"

// Internal to the room.
namespace argosy::transport {

/// Data that is summed in several steps, in a type that loses nothing between them: 16-bit floats
/// in f32, averages of integers in i64, everything else as it is. An average is divided at the end.
class Wide final {
 public:
  /// `takes`: finish() writes the result to `buffers.sums`. False: it stays in this object's
  /// memory.
  Wide(const TreeBuffers& buffers, bool takes, int64_t count, DType dtype, ReduceOp op);

  /// Element `element` of a node of this rank.
  [[nodiscard]] const std::byte* node(size_t index, int64_t element) const {
    return at(nodes_[index], bytes_of(element));
  }
  /// Element `element` of the sum. It may lie where a node lies.
  [[nodiscard]] std::byte* sum(int64_t element) const { return at(sum_, bytes_of(element)); }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] ReduceOp op() const { return op_; }  ///< of each step
  [[nodiscard]] int64_t bytes_of(int64_t count) const {
    return count * static_cast<int64_t>(size_of(dtype_));
  }
  /// Writes the result, if this rank takes it.
  void finish();

 private:
  const TreeBuffers buffers_;
  const bool takes_;
  const int64_t count_;
  const DType narrow_dtype_;
  const ReduceOp wanted_;
  DType dtype_;
  ReduceOp op_;
  std::vector<const void*> nodes_{};
  void* sum_ = nullptr;
  std::vector<std::byte> storage_{};
};

}  // namespace argosy::transport
