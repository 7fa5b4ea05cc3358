#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"

namespace argosy::parallel::ddp {

/// Copies the values of many tensors, of any types, from one rank to all others in few messages.
/// Small tensors travel together as bytes, whatever their dtype.
///
/// Collective; equal tensors on all ranks. The packing memory is kept for repeated use.
/// In-place: writes unseen by autograd, so graphs that saved a buffer stay valid.
class CoalescedBroadcast final {
 public:
  /// Tensors of at least `chunk_bytes` travel alone and without a copy. Undefined, empty and
  /// repeated tensors are skipped.
  explicit CoalescedBroadcast(const std::vector<at::Tensor>& tensors,
                              int64_t chunk_bytes = int64_t{32} << 20);

  void run(const comm::Group& group, int root, std::chrono::milliseconds timeout) const;
  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  [[nodiscard]] size_t messages() const { return chunks_.size(); }

 private:
  struct Chunk {
    at::Tensor bytes{};  // the message
    std::vector<at::Tensor>
        packed{};  // places in `bytes`; empty: the one tensor's own memory travels
    // The module's own tensors, not aliases: loading weights may give them other memory.
    std::vector<at::Tensor> tensors{};
  };
  void pack(const std::vector<at::Tensor>& tensors, int64_t bytes);

  std::vector<Chunk> chunks_;
};

}  // namespace argosy::parallel::ddp
