#include "argosy/comm/device_queues.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "argosy/base/check.h"
#include "argosy/comm/call.h"
#include "argosy/comm/reduce_tensors.h"
#include "argosy/comm/sum_program.h"
#include "argosy/engine/gpu_runtime.h"

namespace argosy::comm {
namespace {

using transport::DType;
using transport::ReduceOp;
using transport::Terms;

template <typename Function>
using ByType = std::array<std::atomic<Function>, c10::COMPILE_TIME_MAX_DEVICE_TYPES>;
ByType<StreamHandle> stream_handles{};
ByType<DeviceAddress> device_addresses{};

StreamHandle of_libtorch(c10::DeviceType type) {
  return type == c10::DeviceType::CUDA && engine::gpu::has_streams() ? &engine::gpu::handle_of
                                                                     : nullptr;
}

StreamHandle handle_of(c10::DeviceType type) {
  std::atomic<StreamHandle>& known = stream_handles.at(static_cast<size_t>(type));
  if (known.load() == nullptr) {
    known = of_libtorch(type);
  }
  return known;
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

class EventMark final : public transport::DeviceMark {
 public:
  explicit EventMark(c10::Stream stream) : device_(stream.device()), event_(stream.device_type()) {
    event_.record(stream);
  }
  [[nodiscard]] bool has_passed() override { return event_.query(); }
  void hold_caller() override { hold(current_stream(device_)); }
  void hold(const c10::Stream& stream) { event_.block(stream); }

 private:
  const c10::Device device_;
  c10::Event event_;
};

at::ScalarType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF64:
      return at::kDouble;
    case DType::kF16:
      return at::kHalf;
    case DType::kBf16:
      return at::kBFloat16;
    case DType::kI8:
      return at::kChar;
    case DType::kI32:
      return at::kInt;
    case DType::kI64:
      return at::kLong;
    case DType::kU8:
    case DType::kBool:  // any byte but 0 is true, which libtorch's own bool does not know
      return at::kByte;
  }
  return at::kByte;
}

class StreamQueue final : public transport::DeviceQueue {
 public:
  explicit StreamQueue(c10::Stream stream) : stream_(stream) {}

  [[nodiscard]] c10::Stream stream() const { return stream_; }
  [[nodiscard]] void* handle() const override { return handle_of(stream_.device_type())(stream_); }
  [[nodiscard]] std::shared_ptr<void> enter() const override {
    return std::make_shared<c10::DeviceGuard>(stream_.device());
  }
  [[nodiscard]] std::shared_ptr<transport::DeviceMark> mark() override {
    return std::make_shared<EventMark>(stream_);
  }
  [[nodiscard]] std::shared_ptr<transport::DeviceMark> mark_of_caller() const override {
    return std::make_shared<EventMark>(current_stream(stream_.device()));
  }
  void follow(transport::DeviceMark& place) override {
    dynamic_cast<EventMark&>(place).hold(stream_);
  }
  [[nodiscard]] std::shared_ptr<void> allocate(int64_t bytes) override {
    const c10::StreamGuard guard(stream_);
    at::Tensor memory = at::empty({bytes}, at::TensorOptions(stream_.device()).dtype(at::kByte));
    void* const data = memory.data_ptr();
    return {data, [kept = std::move(memory)](void*) {}};
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    const c10::StreamGuard guard(stream_);
    tensor(to, bytes, DType::kU8).copy_(tensor(from, bytes, DType::kU8), /*non_blocking=*/true);
  }
  void prepare(const Terms& terms, DType dtype, ReduceOp op) override {
    (void)prepare_sum(stream_.device(), terms, dtype, op);
  }
  void reduce(
      const Terms& terms, void* destination, int64_t count, DType dtype, ReduceOp op) override {
    const c10::StreamGuard guard(stream_);
    if (sum_by_kernel(stream_.device(), terms, destination, count, dtype, op)) {
      return;
    }
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < terms.count; ++i) {
      tensors.push_back(tensor(terms.data[i], count, dtype));
    }
    const at::Tensor sum = reduce_tensors(tensors, terms.merges, terms.divisor, dtype, op);
    tensor(destination, count, dtype).copy_(sum, /*non_blocking=*/true);
  }

 private:
  /// Memory that is not the tensor's.
  [[nodiscard]] at::Tensor tensor(const void* data, int64_t count, DType dtype) const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): from_blob() has no other form
    return at::for_blob(const_cast<void*>(data), {count})
        .target_device(stream_.device())
        .options(at::TensorOptions(stream_.device()).dtype(type_of(dtype)))
        .make_tensor();
  }

  const c10::Stream stream_;
};

class StreamQueues final : public transport::DeviceQueues {
 public:
  explicit StreamQueues(c10::Device device) : device_(device) {}
  [[nodiscard]] std::unique_ptr<transport::DeviceQueue> make() override {
    const c10::impl::VirtualGuardImpl device(device_.type());
    return std::make_unique<StreamQueue>(
        device.getStreamFromGlobalPool(device_, /*isHighPriority=*/true));
  }
  [[nodiscard]] std::string address() const override {
    const DeviceAddress known = device_addresses.at(static_cast<size_t>(device_.type()));
    return known != nullptr    ? known(device_)
           : device_.is_cuda() ? engine::gpu::bus_address(device_)
                               : "";
  }
  [[nodiscard]] bool wants_exact() const override {
    return at::globalContext().deterministicAlgorithms();
  }

 private:
  const c10::Device device_;
};

}  // namespace

void set_stream_handle(c10::DeviceType type, StreamHandle handle, DeviceAddress address) {
  stream_handles.at(static_cast<size_t>(type)) = handle;
  device_addresses.at(static_cast<size_t>(type)) = address;
}

bool has_stream_handle(c10::DeviceType type) {
  return handle_of(type) != nullptr;
}

Route route_of(GroupState& state, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) {
    return {};
  }
  const c10::Device device = tensor.device();
  std::shared_ptr<DeviceLine> line = state.line_of(
      device.str(), [&] { return has_stream_handle(device.type()) ? queues_of(device) : nullptr; });
  if (line == nullptr) {
    return {};
  }
  const c10::Stream stream = stream_of(*line->transport().queue());
  return {std::move(line), stream};
}

std::shared_ptr<transport::DeviceQueues> queues_of(c10::Device device) {
  ARGOSY_CHECK(has_stream_handle(device.type()),
               "comm.device",
               "no transport can use streams of {}",
               device.str());
  return std::make_shared<StreamQueues>(device);
}

c10::Stream stream_of(const transport::DeviceQueue& queue) {
  return dynamic_cast<const StreamQueue&>(queue).stream();
}

}  // namespace argosy::comm
