#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace argosy::engine {

/// Returns memory of the host that copies from `device` and to it may use while the host goes on.
/// Errors: c10::Error where the device has none.
[[nodiscard]] std::shared_ptr<void> pinned_memory(at::Device device, size_t bytes);
/// Returns a stream of the device's pool for copies beside what the current one computes. nullopt
/// where the device has no streams beside the default one, or cannot use pinned memory.
[[nodiscard]] std::optional<c10::Stream> stream_for_copies(at::Device device);

/// Tensors of one device on their way to the host, beside what the device computes next.
///
///     engine::HostFetch fetch({loss});   // behind what the current stream has; blocks nobody
///     loss.backward();
///     fetch.get()[0].item<double>();     // waits for loss, and not for backward
///
/// Tensors of the host are handed through. Where the device has no pinned memory, get() waits for
/// all that is queued.
class HostFetch final {
 public:
  HostFetch() = default;
  explicit HostFetch(std::vector<at::Tensor> tensors);

  /// Returns the tensors on the host, without gradients. Blocks: until they are there.
  [[nodiscard]] const std::vector<at::Tensor>& get();

 private:
  std::vector<at::Tensor> tensors_;
  std::optional<c10::Stream> stream_;  // has copies that nobody has waited for
};

}  // namespace argosy::engine
