#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

namespace argosy::data {

/// Makes CPU tensors, and reuses their memory once nobody refers to it.
///
///     TensorPool pool({.keep = 8});
///     at::Tensor batch = pool.empty({100, 1, 28, 28}, at::kFloat);
///
/// The memory returns when the *storage* is destroyed, with every tensor, view, slice and autograd
/// graph over it. So whoever keeps a batch keeps it untouched, and the pool allocates another one.
/// A batch of 100 images of 224 × 224 has 60 MB, and each fresh allocation would pay for it again
/// in page faults.
/// Thread-safe. Lifetime: tensors may outlive the pool.
class TensorPool final {
 public:
  struct Options {
    size_t keep = 32;  ///< most unused blocks that are kept for later
    /// Makes a block of so many bytes, on any thread; unset: ordinary memory.
    std::function<std::shared_ptr<void>(size_t bytes)> allocate{};
  };
  struct Stats {
    size_t allocated = 0;  ///< blocks that came from the system so far
    size_t reused = 0;     ///< requests that were served by a used block
    size_t unused = 0;     ///< blocks that wait now
    size_t bytes = 0;      ///< bytes of all blocks now, waiting or in tensors

    void add(const Stats& other);
  };

  TensorPool();
  explicit TensorPool(const Options& options);

  /// Returns an uninitialised tensor, dense in this memory format. resize_() cannot enlarge it.
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
