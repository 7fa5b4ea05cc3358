#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "argosy/data/tensor_pool.h"

namespace argosy::data::detail {

/// Brings batches from the host to a device while the device computes: from pinned memory, on a
/// stream of its own.
///
/// Blocks: only for the copy of the fourth batch before. A device without pinned memory or without
/// streams gets its batches by ordinary copies, in hand_over().
/// Threads: pool() and pinned() work in any; the rest belongs to the loop's.
class DeviceCopies final {
 public:
  /// A batch on its way: passed when all of it has arrived; nullptr: it has not left.
  using Flight = std::shared_ptr<c10::Event>;

  /// `keep`: unused blocks that the pool keeps, beside those of batches on their way. A device
  /// without an index is the current one.
  DeviceCopies(at::Device device, size_t keep);
  /// Waits for copies that still read the host's memory.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;
  DeviceCopies(DeviceCopies&&) = delete;
  DeviceCopies& operator=(DeviceCopies&&) = delete;

  /// True if they go to this device; without an index: the current one.
  [[nodiscard]] bool goes_to(at::Device device) const;
  /// Of memory that copies may read while the host goes on.
  [[nodiscard]] TensorPool& pool() { return pool_; }
  /// Returns a tensor of the host in such memory: itself, or a copy.
  [[nodiscard]] at::Tensor pinned(at::Tensor tensor);

  /// Queues copies of the host's tensors, and puts the device's in their places. Nobody may use
  /// these before hand_over().
  [[nodiscard]] Flight start(const std::vector<at::Tensor*>& tensors);
  /// Lets work that is queued in the current stream from now on find the values.
  void hand_over(const Flight& flight, const std::vector<at::Tensor*>& tensors);

 private:
  /// The host's tensors, which go back to the pool when `copied` has passed.
  struct Departed {
    Flight copied;
    std::vector<at::Tensor> host;
  };
  /// Gives back what copies have read, and waits for the oldest of more batches on their way.
  void wait_until_at_most(size_t batches);

  const at::Device device_;
  const std::optional<c10::Stream> stream_;
  TensorPool pool_;
  std::deque<Departed> departed_;  // in the order of the stream
};

}  // namespace argosy::data::detail
