#include "argosy/engine/host_fetch.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "argosy/base/log.h"

namespace argosy::engine {
namespace {

/// One for each device: the streams of a pool are few.
std::optional<c10::Stream> fetching_stream(at::Device device) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<c10::Stream>> streams;
  const std::lock_guard lock(mutex);
  const auto [found, added] = streams.try_emplace(device.str());
  if (added) {
    found->second = stream_for_copies(device);
  }
  return found->second;
}

at::Tensor copy_to_pinned(const at::Tensor& tensor) {
  const std::shared_ptr<void> memory = pinned_memory(tensor.device(), tensor.nbytes());
  const at::Tensor copy = at::from_blob(
      memory.get(), tensor.sizes(), [memory](void*) {}, tensor.options().device(at::kCPU));
  return copy.copy_(tensor, /*non_blocking=*/true);
}

}  // namespace

std::shared_ptr<void> pinned_memory(at::Device device, size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  // Of CUDA's, libtorch has a pool. Other devices pin what there is.
  const at::Tensor memory =
      device.is_cuda() ? at::empty({size}, at::TensorOptions(at::kByte).pinned_memory(true))
                       : at::empty({size}, at::kByte).pin_memory(device);
  return {memory.data_ptr(), [memory](void*) {}};
}

std::optional<c10::Stream> stream_for_copies(at::Device device) {
  try {
    (void)pinned_memory(device, 1);
    return c10::impl::VirtualGuardImpl(device.type())
        .getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  } catch (const c10::Error& error) {
    log::info("[engine.copies] nothing is copied beside what {} computes: {}",
              device.str(),
              error.what_without_backtrace());
    return std::nullopt;
  }
}

HostFetch::HostFetch(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& tensor : tensors_) {
    tensor = tensor.defined() ? tensor.detach() : tensor;
    if (!tensor.defined() || tensor.is_cpu() || tensor.numel() == 0 ||
        tensor.layout() != at::kStrided) {
      continue;
    }
    const at::Device device = tensor.device();
    const std::optional<c10::Stream> stream = fetching_stream(device);
    if (!stream.has_value()) {
      continue;
    }
    c10::Event computed(device.type());
    computed.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    computed.block(*stream);
    const c10::StreamGuard guard(*stream);
    const at::Tensor here = copy_to_pinned(tensor);
    tensor.record_stream(*stream);
    tensor = here;
    stream_ = stream;
  }
}

const std::vector<at::Tensor>& HostFetch::get() {
  if (stream_.has_value()) {
    stream_->synchronize();
    stream_.reset();
  }
  for (at::Tensor& tensor : tensors_) {
    tensor = tensor.defined() ? tensor.cpu() : tensor;
  }
  return tensors_;
}

}  // namespace argosy::engine
