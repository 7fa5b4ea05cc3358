#include "tests/support/second_device.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

// A backend as PyTorch lets anyone register one. What stands here by name makes memory, views and
// copies; all else goes to fallback(), which runs the CPU's kernel. The device type is XPU, for
// which libtorch brings no kernels of its own: PrivateUse1, made for such purposes, is none that
// Module::to(device) of 1.13 moves parameters to (TensorImpl::has_compatible_shallow_copy_type).
namespace argosy::test {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::XPU;
/// Added to addresses: above all that Linux maps (2^47 on x86-64, 2^48 on aarch64), below what
/// aarch64 ignores (2^56).
constexpr uintptr_t kTag = uintptr_t{1} << 54U;

thread_local c10::DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, kSecondDevices> current_streams{};
std::array<std::atomic<c10::StreamId>, kSecondDevices> copy_streams{};

c10::Stream stream_of(c10::Device device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, device, id);
}
size_t place(c10::Device device) {
  return static_cast<size_t>(device.has_index() ? device.index() : current_device);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device getDevice() const override { return {kType, current_device}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < kSecondDevices,
                "there is no device ",
                device.str());
    current_device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return stream_of(device, current_streams[place(device)]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::Stream before = getStream(stream.device());
    current_streams[place(stream.device())] = stream.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kSecondDevices; }
};

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const override {
    const c10::Device device(kType, current_device);
    if (bytes == 0) {
      return {nullptr, device};
    }
    constexpr size_t kLine = 64;
    void* host = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
    TORCH_CHECK(host != nullptr, "no memory for ", bytes, " bytes");
    std::memset(host, 0xff, bytes);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): made to be no address
    return {reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) + kTag),
            host,
            &std::free,
            device};
  }
};
Memory memory;

bool is_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

/// The same memory, as a tensor on the CPU.
at::Tensor as_host(const at::Tensor& tensor) {
  if (!is_here(tensor)) {
    return tensor;
  }
  auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the way back from allocate()
  void* host = address == 0 ? nullptr : reinterpret_cast<void*>(address - kTag);
  return at::from_blob(
      host,
      tensor.sizes(),
      tensor.strides(),
      [kept = tensor](void* /*data*/) {},
      at::TensorOptions(tensor.scalar_type()).device(at::kCPU));
}

at::Tensor empty(at::IntArrayRef sizes,
                 c10::optional<at::ScalarType> dtype,
                 c10::optional<at::Layout> /*layout*/,
                 c10::optional<at::Device> device,
                 c10::optional<bool> /*pin_memory*/,
                 c10::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes,
                                   &memory,
                                   c10::DispatchKeySet(c10::DispatchKey::XPU),
                                   c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(at::IntArrayRef sizes,
                         at::IntArrayRef strides,
                         c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout> /*layout*/,
                         c10::optional<at::Device> device,
                         c10::optional<bool> /*pin_memory*/) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes,
                                           strides,
                                           &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::XPU),
                                           c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  if (is_here(to)) {
    copy_streams[place(to.device())] = current_streams[place(to.device())];
  }
  as_host(to).copy_(as_host(from));
  return to;
}

const at::Tensor& resize(const at::Tensor& tensor,
                         at::IntArrayRef sizes,
                         c10::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(tensor.device());
  at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) {
    impl->empty_tensor_restride(*format);
  }
  const auto elements = static_cast<size_t>(tensor.storage_offset() + tensor.numel());
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (const size_t bytes = elements * tensor.itemsize(); bytes > storage->nbytes()) {
    c10::DataPtr larger = memory.allocate(bytes);
    if (storage->nbytes() > 0) {
      std::memcpy(larger.get_context(), storage->data_ptr().get_context(), storage->nbytes());
    }
    storage->set_data_ptr(std::move(larger));
    storage->set_nbytes(bytes);
  }
  return tensor;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    to.resize_(from.sizes());
  }
  return copy_from(from, to, false);
}

/// Where an operator works: the one device that its tensors are on.
class Place final {
 public:
  explicit Place(const c10::OperatorHandle& op) : op_(op) {}

  void see(const at::Tensor& tensor) {
    if (is_here(tensor)) {
      TORCH_CHECK(!device_ || *device_ == tensor.device(),
                  named(),
                  device_->str(),
                  " and ",
                  tensor.device().str());
      device_ = tensor.device();
    } else if (tensor.defined() && tensor.dim() > 0 && !takes_host_tensors()) {
      host_ = true;
    }
  }
  [[nodiscard]] c10::Device device() const {
    TORCH_CHECK(device_, named(), "no tensor of it");
    TORCH_CHECK(!host_, named(), device_->str(), " and cpu");
    return *device_;
  }

 private:
  [[nodiscard]] std::string named() const {
    return "expected all tensors of " + op_.schema().name() + " on one device, got ";
  }
  /// As CUDA's kernels: indices may lie on the CPU.
  [[nodiscard]] bool takes_host_tensors() const {
    return op_.schema().name().find("index") != std::string::npos;
  }

  const c10::OperatorHandle& op_;
  c10::optional<c10::Device> device_;
  bool host_ = false;
};

/// Calls `f` on each tensor of an argument or result, and stores what it returns.
template <typename F>
void each_tensor(c10::IValue& value, F f) {
  if (value.isTensor()) {
    value = f(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(f(tensor));
    }
    value = list;
  } else if (value.isOptionalTensorList()) {
    c10::List<c10::optional<at::Tensor>> list;
    for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      list.push_back(tensor ? c10::optional<at::Tensor>(f(*tensor)) : c10::nullopt);
    }
    value = list;
  }
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// Any other operator: the CPU's kernel. What it writes it writes into copies, for it may resize
/// them.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto& returns = op.schema().returns();
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(arguments.size());
  std::vector<c10::IValue> here(begin, stack->end());
  std::vector<c10::IValue> host = here;
  Place where(op);
  for (size_t i = 0; i < host.size(); ++i) {
    const bool written = is_written(arguments[i]);
    each_tensor(host[i], [&](const at::Tensor& tensor) {
      where.see(tensor);
      return written && is_here(tensor) ? as_host(tensor).clone() : as_host(tensor);
    });
  }
  const c10::Device device = where.device();
  stack->erase(begin, stack->end());
  for (const c10::IValue& value : host) {
    stack->push_back(value);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  for (size_t i = 0; i < here.size(); ++i) {
    if (is_written(arguments[i])) {
      std::vector<at::Tensor> results;
      each_tensor(host[i], [&](const at::Tensor& tensor) { return results.emplace_back(tensor); });
      size_t next = 0;
      each_tensor(here[i], [&](const at::Tensor& tensor) {
        return is_here(tensor) ? copy_from_and_resize(results[next++], tensor) : results[next++];
      });
    }
  }
  const size_t first = stack->size() - returns.size();
  size_t written = 0;  // results that are arguments come in the order of these
  for (size_t i = 0; i < returns.size(); ++i) {
    if (is_written(returns[i])) {
      while (!is_written(arguments[written])) {
        ++written;
      }
      (*stack)[first + i] = here[written++];
      continue;
    }
    TORCH_CHECK(
        returns[i].alias_info() == nullptr, op.schema().name(), " makes a view: register it");
    each_tensor((*stack)[first + i], [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.to(device) : tensor;
    });
  }
}

at::Tensor convolution(const at::Tensor& input,
                       const at::Tensor& weight,
                       const c10::optional<at::Tensor>& bias,
                       at::IntArrayRef stride,
                       at::IntArrayRef padding,
                       at::IntArrayRef dilation,
                       bool transposed,
                       at::IntArrayRef output_padding,
                       int64_t groups) {
  return at::convolution(as_host(input),
                         as_host(weight),
                         bias ? as_host(*bias) : at::Tensor(),
                         stride,
                         padding,
                         dilation,
                         transposed,
                         output_padding,
                         groups)
      .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad,
                                                                    const at::Tensor& input,
                                                                    const at::Tensor& weight,
                                                                    at::IntArrayRef stride,
                                                                    at::IntArrayRef padding,
                                                                    at::IntArrayRef dilation,
                                                                    bool transposed,
                                                                    at::IntArrayRef output_padding,
                                                                    int64_t groups,
                                                                    std::array<bool, 3> wanted) {
  const auto bias_sizes =
      c10::optional<at::IntArrayRef>(weight.sizes().slice(transposed ? 1 : 0, 1));
  const auto [dx, dw, db] = at::convolution_backward(as_host(grad),
                                                     as_host(input),
                                                     as_host(weight),
                                                     bias_sizes,
                                                     stride,
                                                     padding,
                                                     dilation,
                                                     transposed,
                                                     output_padding,
                                                     groups,
                                                     wanted);
  const auto back = [&](const at::Tensor& t) { return t.defined() ? t.to(input.device()) : t; };
  return {back(dx), back(dw), back(db)};
}

C10_REGISTER_GUARD_IMPL(XPU, Guard)

TORCH_LIBRARY_IMPL(_, XPU, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, XPU, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("view", &at::native::view);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
}

}  // namespace

bool has_second_device() {
  return true;
}
c10::Device second_device(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}
c10::Stream stream_of_last_copy_to(c10::Device device) {
  return stream_of(device, copy_streams[place(device)]);
}
c10::Stream side_stream(c10::Device device) {
  return stream_of(device, 1);
}

}  // namespace argosy::test
