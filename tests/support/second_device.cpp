#include "tests/support/second_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "tests/support/second_device_card.h"
#include "tests/support/second_device_libtorch.h"

// A backend as PyTorch lets anyone register one. What stands here by name makes memory, views and
// copies; all else goes to fallback(), which queues the CPU's kernel.
namespace argosy::test {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr c10::DeviceType kType = c10::DeviceType::ARGOSY_SECOND_DEVICE;
constexpr c10::DispatchKeySet kKernels{c10::DispatchKey::ARGOSY_SECOND_DEVICE};
/// Added to addresses: above all that Linux maps (2^47 on x86-64, 2^48 on aarch64), below what
/// aarch64 ignores (2^56).
constexpr uintptr_t kTag = uintptr_t{1} << 54U;
constexpr c10::StreamId kSideStream = 1;
constexpr c10::StreamId kFirstOfPool = 2;
constexpr c10::StreamId kPoolOfStreams = 32;

thread_local c10::DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, kSecondDevices> current_streams{};
std::array<std::atomic<c10::StreamId>, kSecondDevices> copy_streams{};
std::atomic<c10::StreamId> next_of_pool{0};

c10::Stream stream_of(c10::Device device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, device, id);
}
size_t place(c10::Device device) {
  return static_cast<size_t>(device.has_index() ? device.index() : current_device);
}
Card& card_of(c10::Device device) {
  return Card::number(static_cast<int>(place(device)));
}
/// Of this thread's current stream.
LateQueue& queue_of(c10::Device device) {
  return card_of(device).stream(current_streams[place(device)]);
}
Moment now_on(c10::Device device) {
  return card_of(device).now(current_streams[place(device)]);
}
/// Waits for what this thread's current stream has before it, and for nothing else.
void synchronize(c10::Device device) {
  StreamOrder::of_process().wait(now_on(device));
  card_of(device).throw_error();
}
/// What follows in this thread's current stream waits for the moment.
void block_until(const Moment& moment, c10::Device device) {
  StreamOrder::of_process().block(queue_of(device), moment);
}

void free_block(void* context) {
  auto* const own = static_cast<Block*>(context);
  Card::number(own->card).free(own);
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
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    return stream_of({kType, static_cast<c10::DeviceIndex>(place(device))},
                     kFirstOfPool + next_of_pool++ % kPoolOfStreams);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::Stream before = getStream(stream.device());
    current_streams[place(stream.device())] = stream.id();
    return before;
  }
  void record(void** event,
              const c10::Stream& stream,
              const c10::DeviceIndex /*index*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) {
      *event = new Moment();
    }
    *static_cast<Moment*>(*event) = card_of(stream.device()).now(stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      StreamOrder::of_process().block(card_of(stream.device()).stream(stream.id()),
                                      *static_cast<Moment*>(event));
    }
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || StreamOrder::of_process().has_come(*static_cast<Moment*>(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return StreamOrder::of_process().has_come(card_of(stream.device()).now(stream.id()));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    StreamOrder::of_process().wait(card_of(stream.device()).now(stream.id()));
    card_of(stream.device()).throw_error();
  }
  /// As CUDA's: of memory that is not the allocator's nothing is known.
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get_context() != nullptr && data.get_deleter() == &free_block) {
      card_of(stream.device()).use(static_cast<Block*>(data.get_context()), stream.id());
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kSecondDevices; }
};

bool is_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

const void* host_address(const void* address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the way back from allocate()
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(address) - kTag);
}

/// Of the memory at an address of the device. Null: it is none.
Uses* uses_at(const void* address) {
  Block* const block = address == nullptr ? nullptr : Card::block_at(host_address(address));
  return block == nullptr ? nullptr : &block->uses;
}

class Memory final : public Allocator {
 public:
  [[nodiscard]] c10::DataPtr make(size_t bytes) const override {
    register_second_device();  // for programs that have it by engine::find_device()
    const c10::Device device(kType, current_device);
    if (bytes == 0) {
      return {nullptr, device};
    }
    Block* const block = card_of(device).allocate(bytes, current_streams[place(device)]);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): made to be no address
    return {reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block->host) + kTag),
            block,
            &free_block,
            device};
  }
  /// In the current stream, as every work.
  void copy(void* to, const void* from, size_t bytes) const override {
    StreamOrder::of_process().submit(
        queue_of({kType, current_device}),
        [to = const_cast<void*>(host_address(to)), from = host_address(from), bytes] {
          std::memcpy(to, from, bytes);
        },
        {{uses_at(from), false}, {uses_at(to), true}});
  }
};
Memory memory;

/// Null for a tensor of the host.
Uses* uses_of(const at::Tensor& tensor) {
  return is_here(tensor) ? uses_at(tensor.data_ptr()) : nullptr;
}

std::vector<Access> accesses(const Tensors& tensors, bool writes) {
  std::vector<Access> all;
  std::ranges::transform(tensors, std::back_inserter(all), [&](const at::Tensor& tensor) {
    return Access{uses_of(tensor), writes};
  });
  return all;
}

/// The memory of a tensor, for work in its stream. It does not keep the memory: as on a GPU, who
/// gives a tensor back too early finds another's values there.
at::Tensor as_host(const at::Tensor& tensor) {
  if (!is_here(tensor)) {
    return tensor;
  }
  void* const address = tensor.data_ptr();
  return at::from_blob(address == nullptr ? nullptr : const_cast<void*>(host_address(address)),
                       tensor.sizes(),
                       tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()).device(at::kCPU));
}

/// What work that runs later reads: a host's tensor may have changed by then.
at::Tensor for_later(const at::Tensor& tensor) {
  if (is_here(tensor) || !tensor.defined()) {
    return as_host(tensor);
  }
  at::Tensor copy = tensor.detach().clone();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return copy;
}

at::Tensor zeros_like_it(const at::Tensor& tensor) {
  return is_here(tensor) ? at::empty_strided(tensor.sizes(),
                                             tensor.strides(),
                                             tensor.options().device(at::kCPU).requires_grad(false))
                               .zero_()
                         : tensor;
}

at::Tensor empty(at::IntArrayRef sizes,
                 c10::optional<at::ScalarType> dtype,
                 c10::optional<at::Layout> /*layout*/,
                 c10::optional<at::Device> device,
                 c10::optional<bool> /*pin_memory*/,
                 c10::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, &memory, kKernels, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes,
                         at::IntArrayRef strides,
                         c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout> /*layout*/,
                         c10::optional<at::Device> device,
                         c10::optional<bool> /*pin_memory*/) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(
      sizes, strides, &memory, kKernels, c10::dtype_or_default(dtype));
}

/// What a copy from the host reads: pinned memory when the stream comes to it, so that who reuses
/// it too early spoils the copy; other memory now.
at::Tensor for_copy(const at::Tensor& host, bool non_blocking) {
  return non_blocking && is_pinned(host.data_ptr())
             ? at::from_blob(host.data_ptr(),
                             host.sizes(),
                             host.strides(),
                             at::TensorOptions(host.scalar_type()))
             : for_later(host);
}

/// As CUDA's: from the host's memory and to it in order, and waited for unless it is non_blocking
/// and, if it goes there, to pinned memory; between two cards after what both have before it.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const c10::Device device = is_here(to) ? to.device() : from.device();
  if (is_here(to) && from.device() != to.device()) {
    copy_streams[place(device)] = current_streams[place(device)];
  }
  const bool two_cards = is_here(from) && is_here(to) && from.device() != to.device();
  if (two_cards) {
    block_until(now_on(from.device()), device);
  }
  StreamOrder::of_process().submit(
      queue_of(device),
      [source = is_here(from) ? as_host(from) : for_copy(from, non_blocking),
       target = as_host(to)] {
        const at::NoGradGuard no_grad;
        target.copy_(source);
      },
      {{uses_of(from), false}, {uses_of(to), true}});
  if (two_cards) {
    block_until(now_on(device), from.device());
  } else if (is_here(to) ? !is_here(from) && !non_blocking
                         : !non_blocking || !is_pinned(to.data_ptr())) {
    synchronize(device);
  }
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
    c10::DataPtr larger = memory.make(bytes);
    if (storage->nbytes() > 0) {
      memory.copy(larger.get(), storage->data_ptr().get(), storage->nbytes());
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
    for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? c10::optional<at::Tensor>(f(*tensor)) : c10::nullopt);
    }
    value = list;
  }
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// Before the work is queued, for its results' shapes at least, or in the stream's turn.
enum class When { kNow, kLater };

/// What an operator does, on the host's tensors.
struct Work {
  Tensors inputs{};
  std::function<Tensors(const Tensors&, When)> compute{};
  Tensors written{};               ///< arguments that take the first results
  bool depends_on_values = false;  ///< the results' shapes do
};

Tensors mapped(const Tensors& tensors, at::Tensor (*map)(const at::Tensor&)) {
  Tensors result;
  std::ranges::transform(tensors, std::back_inserter(result), map);
  return result;
}

void copy_each(const Tensors& from, const Tensors& to) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].defined()) {
      TORCH_CHECK(from[i].sizes() == to[i].sizes(), "a shape depends on values: run it at once");
      to[i].copy_(from[i]);
    }
  }
}

/// Queues the work and returns its results, which hold their values later. Their shapes are those
/// that it has on zeros. What cannot be computed of zeros runs at once.
Tensors queue(const Work& work, c10::Device device) {
  bool at_once = work.depends_on_values;
  Tensors shapes;
  if (!at_once) {
    try {
      shapes = work.compute(mapped(work.inputs, &zeros_like_it), When::kNow);
    } catch (const c10::Error&) {
      at_once = true;
    }
  }
  if (at_once) {
    synchronize(device);
    StreamOrder::of_process().read(accesses(work.inputs, false));
    shapes = work.compute(mapped(work.inputs, &as_host), When::kNow);
  }
  Tensors results;
  for (const at::Tensor& like : shapes) {
    if (results.size() < work.written.size()) {
      const at::Tensor& target = results.emplace_back(work.written[results.size()]);
      if (target.defined() && target.sizes() != like.sizes()) {
        target.resize_(like.sizes());
      }
    } else {
      results.push_back(
          like.defined()
              ? at::empty_strided(like.sizes(), like.strides(), like.options().device(device))
              : at::Tensor());
    }
  }
  Tensors places = mapped(results, &as_host);
  if (at_once) {
    synchronize(device);
    copy_each(shapes, places);
  } else {
    std::vector<Access> touched = accesses(results, true);
    const std::vector<Access> read = accesses(work.inputs, false);
    touched.insert(touched.end(), read.begin(), read.end());
    StreamOrder::of_process().submit(
        queue_of(device),
        [inputs = mapped(work.inputs, &for_later),
         compute = work.compute,
         places = std::move(places),
         threads = at::get_num_threads()] {
          if (at::get_num_threads() != threads) {
            at::set_num_threads(threads);
          }
          const at::NoGradGuard no_grad;
          const at::AutoDispatchBelowAutograd
              below;  // as kernels are called, which oneDNN's insist on
          copy_each(compute(inputs, When::kLater), places);
        },
        touched);
  }
  return results;
}

/// An operator's arguments without its tensors, and what is to be known of it.
class Call final {
 public:
  /// Moves the tensors of the arguments to `work`: what is queued keeps no memory.
  Call(const c10::OperatorHandle& op, const torch::jit::Stack& stack, Work& work)
      : op_(op),
        given_(stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()),
               stack.end()) {
    const auto& arguments = op.schema().arguments();
    Place where(op);
    for (size_t i = 0; i < given_.size(); ++i) {
      const bool written = is_written(arguments[i]);
      each_tensor(given_[i], [&](const at::Tensor& tensor) {
        where.see(tensor);
        work.inputs.push_back(tensor);
        if (written) {
          work.written.push_back(tensor);
        }
        return at::Tensor();
      });
      if (arguments[i].type()->str().find("Generator") != std::string::npos) {
        generator_ = i;
      }
    }
    device_ = where.device();
    work.depends_on_values = depends_on_values(work.inputs);
  }

  [[nodiscard]] c10::Device device() const { return *device_; }

  /// Whether the device has to be waited for: the results' shapes depend on values, or are no
  /// tensors, or come from random numbers whose generator cannot be named.
  [[nodiscard]] bool depends_on_values(const Tensors& inputs) const {
    static const std::set<std::string> named{"aten::nonzero",
                                             "aten::masked_select",
                                             "aten::_unique",
                                             "aten::_unique2",
                                             "aten::unique_dim",
                                             "aten::unique_consecutive",
                                             "aten::repeat_interleave",
                                             "aten::bincount",
                                             "aten::native_dropout"};
    const auto is_mask = [](const at::Tensor& tensor) {
      return tensor.defined() &&
             (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte);
    };
    return named.contains(op_.schema().name()) || !returns_tensors() ||
           (op_.schema().name() == "aten::index" &&
            std::any_of(inputs.begin() + 1, inputs.end(), is_mask));
  }
  [[nodiscard]] bool returns_tensors() const {
    return std::ranges::all_of(op_.schema().returns(), [](const c10::Argument& result) {
      return result.type()->str().find("Tensor") != std::string::npos;
    });
  }

  /// The call on tensors of the host: what it has written, and its other results. `returned`, if
  /// any, gets what the operator returns.
  Tensors run(const Tensors& inputs,
              const c10::IValue& generator,
              torch::jit::Stack* returned) const {
    const auto& arguments = op_.schema().arguments();
    std::vector<c10::IValue> host = given_;
    size_t next = 0;
    Tensors results;
    for (size_t i = 0; i < host.size(); ++i) {
      each_tensor(host[i], [&](const at::Tensor&) {
        const at::Tensor& input = inputs[next++];
        // Into a copy, for it may be resized.
        return is_written(arguments[i]) && input.defined() ? results.emplace_back(input.clone())
                                                           : input;
      });
    }
    if (generator_.has_value() && !generator.isNone()) {
      host[*generator_] = generator;
    }
    torch::jit::Stack stack = host;
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    results.clear();
    for (size_t i = 0; i < host.size(); ++i) {
      if (is_written(arguments[i])) {
        each_tensor(host[i],
                    [&](const at::Tensor& tensor) { return results.emplace_back(tensor); });
      }
    }
    for (size_t i = 0; i < stack.size(); ++i) {
      const c10::AliasInfo* alias = op_.schema().returns()[i].alias_info();
      if (alias == nullptr) {
        each_tensor(stack[i],
                    [&](const at::Tensor& tensor) { return results.emplace_back(tensor); });
      } else {
        TORCH_CHECK(alias->isWrite(), op_.schema().name(), " makes a view: register it");
      }
    }
    if (returned != nullptr) {
      *returned = std::move(stack);
    }
    return results;
  }

  /// The random numbers that the call gets wherever it runs; none for an operator that draws none.
  [[nodiscard]] c10::IValue generator_now() const {
    if (!generator_.has_value()) {
      return {};
    }
    at::Generator generator = given_[*generator_].isNone() ? at::detail::getDefaultCPUGenerator()
                                                           : given_[*generator_].toGenerator();
    const std::lock_guard lock(generator.mutex());
    return generator.clone();
  }

 private:
  c10::OperatorHandle op_;
  std::vector<c10::IValue> given_;
  c10::optional<c10::Device> device_{};
  std::optional<size_t> generator_{};
};

/// Any other operator: the CPU's kernel.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto& returns = op.schema().returns();
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(arguments.size());
  std::vector<c10::IValue> here(begin, stack->end());
  Work work;
  const Call call(op, *stack, work);
  stack->erase(begin, stack->end());
  if (!call.returns_tensors()) {
    synchronize(call.device());
    StreamOrder::of_process().read(accesses(work.inputs, false));
    torch::jit::Stack returned;
    (void)call.run(mapped(work.inputs, &as_host), {}, &returned);
    stack->insert(stack->end(), returned.begin(), returned.end());
    return;
  }
  torch::jit::Stack returned;
  work.compute = [call,
                  generator = work.depends_on_values ? c10::IValue() : call.generator_now(),
                  returned = &returned](const Tensors& inputs, When when) {
    return when == When::kNow ? call.run(inputs, {}, returned)
                              : call.run(inputs, generator, nullptr);
  };
  const Tensors results = queue(work, call.device());
  size_t next = work.written.size();
  size_t argument = 0;  // results that are arguments come in the order of these
  for (size_t i = 0; i < returns.size(); ++i) {
    if (is_written(returns[i])) {
      while (!is_written(arguments[argument])) {
        ++argument;
      }
      stack->push_back(here[argument++]);
      continue;
    }
    each_tensor(returned[i], [&](const at::Tensor&) { return results[next++]; });
    stack->push_back(returned[i]);
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
  return queue({.inputs = {input, weight, bias.value_or(at::Tensor())},
                .compute =
                    [stride = stride.vec(),
                     padding = padding.vec(),
                     dilation = dilation.vec(),
                     transposed,
                     output_padding = output_padding.vec(),
                     groups](const Tensors& in, When /*when*/) {
                      return Tensors{at::convolution(in[0],
                                                     in[1],
                                                     in[2],
                                                     stride,
                                                     padding,
                                                     dilation,
                                                     transposed,
                                                     output_padding,
                                                     groups)};
                    }},
               input.device())
      .front();
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
  const Tensors results = queue({.inputs = {grad, input, weight},
                                 .compute =
                                     [bias = std::vector<int64_t>{weight.size(transposed ? 1 : 0)},
                                      stride = stride.vec(),
                                      padding = padding.vec(),
                                      dilation = dilation.vec(),
                                      transposed,
                                      output_padding = output_padding.vec(),
                                      groups,
                                      wanted](const Tensors& in, When /*when*/) {
                                       const auto [dx, dw, db] =
                                           at::convolution_backward(in[0],
                                                                    in[1],
                                                                    in[2],
                                                                    bias,
                                                                    stride,
                                                                    padding,
                                                                    dilation,
                                                                    transposed,
                                                                    output_padding,
                                                                    groups,
                                                                    wanted);
                                       return Tensors{dx, dw, db};
                                     }},
                                input.device());
  return {results[0], results[1], results[2]};
}

at::Tensor roots_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) {
    return at::sqrt(tensor);
  }
  at::Tensor roots = tensor.clone(at::MemoryFormat::Contiguous);
  AT_DISPATCH_FLOATING_TYPES(roots.scalar_type(), "roots_of", [&] {
    auto* const values = roots.data_ptr<scalar_t>();
    std::transform(
        values, values + roots.numel(), values, [](scalar_t value) { return std::sqrt(value); });
  });
  return roots;
}

/// Rounded as CUDA's, and as the optimizers' own kernels: the official libtorch 2 takes the CPU's
/// roots by MKL, which rounds one of 150 to the other side.
at::Tensor& sqrt_out(const at::Tensor& tensor, at::Tensor& out) {
  queue({.inputs = {tensor},
         .compute = [](const Tensors& in, When /*when*/) { return Tensors{roots_of(in[0])}; },
         .written = {out}},
        tensor.device());
  return out;
}

void record_stream(at::Tensor& tensor, at::Stream stream) {
  Guard().recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

C10_REGISTER_GUARD_IMPL(ARGOSY_SECOND_DEVICE, Guard)

TORCH_LIBRARY_IMPL(_, ARGOSY_SECOND_DEVICE, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, ARGOSY_SECOND_DEVICE, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize);
  library.impl("record_stream", &record_stream);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("view", &at::native::view);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("sqrt.out", &sqrt_out);
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
}

}  // namespace

c10::DeviceType type_of_second_device() {
  return kType;
}
c10::Device second_device(int index) {
  register_second_device();
  return {kType, static_cast<c10::DeviceIndex>(index)};
}
c10::Stream stream_of_last_copy_to(c10::Device device) {
  return stream_of(device, copy_streams[place(device)]);
}
c10::Stream side_stream(c10::Device device) {
  return stream_of(device, kSideStream);
}

void* handle_of(c10::Stream stream) {
  return &card_of(stream.device()).stream(stream.id());
}

}  // namespace argosy::test

// What a library of the device's own finds by dlsym(): see tests/fake_nccl/fake_nccl.h.
extern "C" {

void* argosy_second_device_host_address(const void* address) {
  return const_cast<void*>(argosy::test::host_address(address));
}

int argosy_second_device_current() {
  return argosy::test::current_device;
}

void argosy_second_device_enqueue(void* stream,
                                  void (*run)(void* context),
                                  void* context,
                                  const void* const* addresses,
                                  const bool* writes,
                                  int count) {
  std::vector<argosy::test::Access> touched;
  for (int i = 0; i < count; ++i) {
    touched.push_back({argosy::test::uses_at(addresses[i]), writes[i]});
  }
  argosy::test::StreamOrder::of_process().submit(
      *static_cast<argosy::test::LateQueue*>(stream), [run, context] { run(context); }, touched);
}

}  // extern "C"
