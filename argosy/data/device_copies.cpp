#include "argosy/data/device_copies.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

#include "argosy/base/check.h"
#include "argosy/engine/device.h"
#include "argosy/engine/host_fetch.h"

namespace argosy::data::detail {
namespace {

/// A loop that never waits for its device may get far ahead of it. Where this many copies are not
/// done, they are what takes the time, and more of them would only take memory.
constexpr size_t kMostOnTheirWay = 4;

at::Device with_index(at::Device device) {
  const int there = engine::device_count(device.type());
  ARGOSY_CHECK(device.index() < there && there > 0,
               "data.DataLoader",
               "batches are to go to {}, and this process sees {} devices of that kind",
               device.str(),
               there);
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

/// Newer versions of libtorch ask not to be told the device where it is the program's only kind.
c10::optional<at::Device> named(at::Device device) {
  return device.is_cuda() ? c10::nullopt : c10::optional<at::Device>(device);
}

TensorPool::Options pool_options(at::Device device, bool pinned, size_t keep) {
  TensorPool::Options options{.keep = keep + 4 * kMostOnTheirWay};  // 4 tensors to a batch
  if (pinned) {
    options.allocate = [device](size_t bytes) { return engine::pinned_memory(device, bytes); };
  }
  return options;
}

/// True for what is copied ahead; the rest is rare, and copied in hand_over().
bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized();
}
bool leaves_host(const at::Tensor& tensor) {
  return is_plain(tensor) && tensor.is_cpu();
}

}  // namespace

DeviceCopies::DeviceCopies(at::Device device, size_t keep)
    : device_(with_index(device)),
      stream_(engine::stream_for_copies(device_)),
      pool_(pool_options(device_, stream_.has_value(), keep)) {}

DeviceCopies::~DeviceCopies() {
  try {
    wait_until_at_most(0);
  } catch (const std::exception&) {  // the device is gone, and reads nothing any more
  }
}

bool DeviceCopies::goes_to(at::Device device) const {
  return with_index(device) == device_;
}

at::Tensor DeviceCopies::pinned(at::Tensor tensor) {
  if (!stream_.has_value() || !leaves_host(tensor) || tensor.is_pinned(named(device_))) {
    return tensor;
  }
  at::Tensor copy;
  if (tensor.is_non_overlapping_and_dense()) {  // its strides are what to() would keep
    copy = pool_.empty({tensor.numel()}, tensor.scalar_type())
               .as_strided(tensor.sizes(), tensor.strides());
  } else {
    copy = pool_.empty(tensor.sizes(), tensor.scalar_type());
  }
  return copy.copy_(tensor);
}

DeviceCopies::Flight DeviceCopies::start(const std::vector<at::Tensor*>& tensors) {
  if (!stream_.has_value()) {
    return nullptr;
  }
  wait_until_at_most(kMostOnTheirWay - 1);
  const at::NoGradGuard no_grad;
  const c10::StreamGuard guard(*stream_);
  auto flight = std::make_shared<c10::Event>(device_.type());
  std::vector<at::Tensor>& host = departed_.emplace_back(Departed{flight, {}}).host;
  std::exception_ptr error;
  try {
    for (at::Tensor* const tensor : tensors) {
      if (leaves_host(*tensor)) {
        host.push_back(*tensor);
        *tensor = tensor->to(at::TensorOptions(device_), /*non_blocking=*/true);
      }
    }
  } catch (...) {  // copies before it are under way
    error = std::current_exception();
  }
  flight->record(*stream_);
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  return flight;
}

void DeviceCopies::hand_over(const Flight& flight, const std::vector<at::Tensor*>& tensors) {
  if (flight != nullptr) {
    const c10::Stream user = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
    flight->block(user);
    for (const at::Tensor* const tensor : tensors) {
      if (is_plain(*tensor) && tensor->device() == device_) {
        tensor->record_stream(user);
      }
    }
  }
  for (at::Tensor* const tensor : tensors) {
    if (tensor->defined()) {
      *tensor = tensor->to(device_);
    }
  }
}

void DeviceCopies::wait_until_at_most(size_t batches) {
  while (!departed_.empty()) {
    if (departed_.front().copied->query()) {
      departed_.pop_front();
    } else if (departed_.size() > batches) {
      // Not by synchronize(), which throws what other work of the device did wrong.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      return;
    }
  }
}

}  // namespace argosy::data::detail
