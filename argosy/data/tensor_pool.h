#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>

namespace argosy::data {

/// CPU tensors whose memory is used again once nobody refers to it.
///
///     TensorPool pool({.keep = 8});
///     at::Tensor batch = pool.empty({100, 1, 28, 28}, at::kFloat);
///
/// The memory returns when the *storage* dies: every tensor, view, slice and autograd graph over
/// it. Whoever keeps a batch keeps it for ever untouched; the pool just allocates another one. Why:
/// a batch of 100 images of 224 × 224 is 60 MB, which a fresh allocation pays for again in page
/// faults, each time.
/// Thread-safe. Lifetime: tensors may outlive the pool.
class TensorPool final {
 public:
  struct Options {
    size_t keep = 32;  ///< unused blocks that are kept for later, at most
  };
  struct Stats {
    size_t allocated = 0;  ///< blocks that came from the system so far
    size_t reused = 0;     ///< requests that were served by a used block
    size_t unused = 0;     ///< blocks that wait now
    size_t bytes = 0;      ///< of all blocks now, those that wait and those in tensors
  };

  TensorPool();
  explicit TensorPool(const Options& options);

  /// An uninitialised tensor, dense in this memory format. It cannot be enlarged by resize_().
  /// Errors: UsageError for ChannelsLast unless there are four dimensions, and for other formats.
  [[nodiscard]] at::Tensor empty(at::IntArrayRef sizes,
                                 at::ScalarType dtype,
                                 at::MemoryFormat format = at::MemoryFormat::Contiguous);
  [[nodiscard]] Stats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace argosy::data
