#include "argosy/engine/deferred.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/log.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/engine/operator_tensors.h"

namespace argosy::engine {
namespace {

constexpr const char* kDeferred = "engine.deferred";
constexpr size_t kWorthDeferring = 4096;  // a page
constexpr int64_t kDrawnAtOnce = 1 << 14;

/// What makes tensors by an inner call of empty() and then fills them by operators, which we see.
constexpr std::array<std::string_view, 6> kFactories{
    "aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::rand", "aten::randn"};
/// What may be computed again from the values before it, numbers and a generator. Their names alone
/// do not suffice: none may get a second tensor.
constexpr std::array<std::string_view, 16> kRepeatable{"aten::zero_",
                                                       "aten::fill_",
                                                       "aten::uniform_",
                                                       "aten::normal_",
                                                       "aten::random_",
                                                       "aten::exponential_",
                                                       "aten::cauchy_",
                                                       "aten::log_normal_",
                                                       "aten::bernoulli_",
                                                       "aten::mul_",
                                                       "aten::add_",
                                                       "aten::sub_",
                                                       "aten::div_",
                                                       "aten::clamp_",
                                                       "aten::erfinv_",
                                                       "aten::neg_"};

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The guards of this thread.
struct Scope {
  int64_t guards = 0;
  at::CallbackHandle handle = 0;
  int64_t depth = 0;  // of operators
  bool in_factory = false;
  at::Tensor scratch{};  // bytes in which operators run whose results are not kept
};
thread_local Scope scope;

/// Ours is not the program's: no graph, nobody who listens.
struct Unwatched {
  at::NoGradGuard no_grad{};
  at::DisableRecordFunctionGuard unseen{};
};

/// The values of a tensor that has no memory, as what makes them.
class DeferredMemory final : public ComingMemory {
 public:
  explicit DeferredMemory(const at::Tensor& fresh)
      : options_(fresh.options().requires_grad(false)),
        elements_(static_cast<int64_t>(fresh.storage().nbytes() / fresh.element_size())) {}

  void before_use(bool /*writes*/) noexcept override { use(nullptr); }
  void before_operator(const at::RecordFunction& function, bool writes) noexcept override {
    use(writes && scope.guards > 0 ? &function : nullptr);
  }
  void after_use() noexcept override {
    const std::lock_guard lock(mutex_);
    --uses_;
    if (uses_ == 0 && lent_) {
      lent_ = false;
      take_back();
    }
  }

  void draw_by(DrawRange draw, std::string identity) {
    const std::lock_guard lock(mutex_);
    calls_.clear();
    draw_ = std::move(draw);
    identity_ = std::move(identity);
  }

  void bring() {
    const std::lock_guard lock(mutex_);
    if (!there_) {
      const Unwatched unwatched;
      const at::Tensor memory = at::empty({elements_}, options_);
      write(memory);
      settle(memory);
      there_ = true;
    }
  }

  /// Of a view of it: elements of a range, in row-major order.
  void copy_part(const at::Tensor& view, const at::Tensor& part, const IndexRange& range) {
    const std::lock_guard lock(mutex_);
    const Unwatched unwatched;
    if (calls_.empty() && draw_ && view.is_contiguous() && part.is_contiguous() &&
        part.scalar_type() == at::kFloat) {
      draw_into(part, view.storage_offset() + range.begin);
      return;
    }
    const at::Tensor whole = at::empty({elements_}, options_);
    write(whole);
    part.copy_(whole.as_strided(view.sizes(), view.strides(), view.storage_offset())
                   .reshape(-1)
                   .narrow(0, range.begin, range.size()));
  }

  [[nodiscard]] uint64_t identity() {
    const std::lock_guard lock(mutex_);
    Fingerprint values;
    values.add(identity_);
    for (const Call& call : calls_) {
      values.add(call.name);
      values.add(call.numbers);
      values.add(call.view.offset);
      for (const int64_t size : call.view.sizes) {
        values.add(size);
      }
      if (call.generator) {
        const at::Tensor state = call.generator->get_state();
        values.add(std::string_view(static_cast<const char*>(state.data_ptr()), state.nbytes()));
      }
    }
    return values.value();
  }

 private:
  /// An operator in place.
  struct Call {
    c10::OperatorHandle op;
    std::string name{};
    std::string numbers{};  // its arguments but the first, as text
    std::vector<c10::IValue> arguments{};
    struct {
      std::vector<int64_t> sizes{}, strides{};
      int64_t offset = 0;
    } view{};  // its first argument
    std::optional<size_t> generator_at{};
    std::optional<at::Generator> generator{};  // in the state before the call
  };

  void use(const at::RecordFunction* function) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      if (++uses_ > 1 || there_) {
        return;  // what an operator calls that is noted already
      }
      const Unwatched unwatched;
      if (std::optional<Call> call = function == nullptr ? std::nullopt : noted(*function)) {
        calls_.push_back(*std::move(call));
        lend(scratch());
        lent_ = true;
        return;
      }
      bring();
    } catch (const std::exception& error) {
      log::error("[{}] no memory for {} values of {} that an operator needs: {}",
                 kDeferred,
                 elements_,
                 c10::toString(c10::typeMetaToScalarType(options_.dtype())),
                 error.what());
      std::terminate();  // it would compute with a null pointer
    }
  }

  /// Returns how to call it again; nullopt: it takes more than numbers and a generator.
  std::optional<Call> noted(const at::RecordFunction& function) const {
    const auto name = function.operator_name();
    if (!name || !is_among(kRepeatable, name->name)) {
      return std::nullopt;
    }
    const auto op = c10::Dispatcher::singleton().findSchema(*name);
    const auto inputs = function.inputs();
    if (!op || inputs.empty() || !inputs[0].isTensor() ||
        inputs[0].toTensor().dtype() != options_.dtype()) {
      return std::nullopt;
    }
    Call call{.op = *op,
              .name = toString(*name),
              .arguments = std::vector<c10::IValue>(inputs.begin(), inputs.end())};
    const at::Tensor self = inputs[0].toTensor();
    call.view = {self.sizes().vec(), self.strides().vec(), self.storage_offset()};
    call.arguments[0] = c10::IValue();  // would keep its own memory
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i].isTensor() || inputs[i].isTensorList()) {
        return std::nullopt;
      }
      const bool draws = op->schema().arguments()[i].name() == "generator";
      if (draws) {
        at::Generator generator =
            inputs[i].isNone() ? at::detail::getDefaultCPUGenerator() : inputs[i].toGenerator();
        const std::lock_guard lock(generator.mutex());
        call.generator_at = i;
        call.generator = generator.clone();
        call.arguments[i] = c10::IValue();
      } else {
        std::ostringstream text;
        text << inputs[i] << ' ';
        call.numbers += text.str();
      }
    }
    return call;
  }

  /// Memory of no certain values.
  at::Tensor scratch() const {
    const auto bytes = elements_ * static_cast<int64_t>(options_.dtype().itemsize());
    if (!scope.scratch.defined() || scope.scratch.numel() < bytes) {
      scope.scratch = at::Tensor();
      scope.scratch = at::empty({bytes}, at::kByte);
    }
    return scope.scratch;
  }

  void draw_into(const at::Tensor& flat, int64_t first) const {
    auto* const values = flat.data_ptr<float>();
    at::parallel_for(0, flat.numel(), kDrawnAtOnce, [&](int64_t begin, int64_t end) {
      draw_(first + begin, std::span(values + begin, static_cast<size_t>(end - begin)));
    });
  }

  /// Writes all values.
  void write(const at::Tensor& flat) const {
    if (draw_) {
      const bool direct = flat.scalar_type() == at::kFloat;
      const at::Tensor drawn = direct ? flat : at::empty({elements_}, at::kFloat);
      draw_into(drawn, 0);
      if (!direct) {
        flat.copy_(drawn);
      }
    }
    for (const Call& call : calls_) {
      std::vector<c10::IValue> stack = call.arguments;
      stack[0] = flat.as_strided(call.view.sizes, call.view.strides, call.view.offset);
      if (call.generator_at) {
        stack[*call.generator_at] = call.generator->clone();
      }
      call.op.callBoxed(&stack);
    }
  }

  const at::TensorOptions options_;
  const int64_t elements_;
  std::recursive_mutex mutex_{};
  std::vector<Call> calls_{};
  DrawRange draw_{};  // before the calls
  std::string identity_{};
  int uses_ = 0;
  bool lent_ = false;
  bool there_ = false;
};

std::shared_ptr<DeferredMemory> deferred_memory(const at::Tensor& tensor) {
  return std::dynamic_pointer_cast<DeferredMemory>(coming_memory_of(tensor));
}

std::unique_ptr<at::ObserverContext> begin_making(const at::RecordFunction& function) {
  if (scope.depth++ == 0) {
    const auto name = function.operator_name();
    scope.in_factory = name && is_among(kFactories, name->name);
  }
  return nullptr;
}

/// Takes the memory of what empty() has made for us.
void end_making(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  --scope.depth;
  const auto name = function.operator_name();
  if (!scope.in_factory || scope.depth > 1 || !name || name->name != "aten::empty") {
    return;
  }
  for (const c10::IValue& output : function.outputs()) {
    for_tensors(output, [](const at::Tensor& tensor) {
      if (tensor.is_cpu() && tensor.layout() == at::kStrided &&
          tensor.storage().nbytes() >= kWorthDeferring && !tensor.is_inference()) {
        std::make_shared<DeferredMemory>(tensor)->empty_out(tensor);
      }
    });
  }
}

}  // namespace

Deferred::Deferred() {
  if (scope.guards++ == 0) {
    scope.handle = at::addThreadLocalCallback(at::RecordFunctionCallback(begin_making, end_making)
                                                  .needsInputs(true)
                                                  .needsOutputs(true)
                                                  .scopes({at::RecordScope::FUNCTION}));
  }
}

Deferred::~Deferred() {
  if (--scope.guards == 0) {
    at::removeCallback(scope.handle);
    scope.scratch = at::Tensor();
  }
}

bool is_deferred(const at::Tensor& tensor) {
  return deferred_memory(tensor) != nullptr;
}

void bring_memory(const at::Tensor& tensor) {
  if (const auto memory = deferred_memory(tensor)) {
    memory->bring();
  }
}

void bring_memory(const torch::nn::Module& module) {
  for (const at::Tensor& tensor : module.parameters()) {
    bring_memory(tensor);
  }
  for (const at::Tensor& tensor : module.buffers()) {
    bring_memory(tensor);
  }
}

void draw_values(const at::Tensor& tensor, DrawRange draw, std::string identity) {
  ARGOSY_CHECK(tensor.is_floating_point() && tensor.is_contiguous(),
               "engine.draw_values",
               "expected a contiguous tensor of floating point");
  const bool is_all = tensor.storage().nbytes() == tensor.nbytes();
  if (const auto memory = deferred_memory(tensor); memory != nullptr && is_all) {
    memory->draw_by(std::move(draw), std::move(identity));
    return;
  }
  const at::NoGradGuard no_grad;
  const bool in_place = tensor.is_cpu() && tensor.scalar_type() == at::kFloat;
  const DirectUse use({in_place ? tensor : at::Tensor()}, /*writes=*/true);
  const at::Tensor drawn = in_place ? tensor : at::empty(tensor.sizes(), at::kFloat);
  auto* const values = drawn.data_ptr<float>();
  at::parallel_for(0, drawn.numel(), kDrawnAtOnce, [&](int64_t begin, int64_t end) {
    draw(begin, std::span(values + begin, static_cast<size_t>(end - begin)));
  });
  if (!in_place) {
    tensor.copy_(drawn);
  }
}

void draw_part(const at::Tensor& tensor, const at::Tensor& part, const IndexRange& range) {
  const auto memory = deferred_memory(tensor);
  ARGOSY_CHECK(memory != nullptr && part.numel() == range.size(),
               "engine.draw_part",
               "expected a tensor that is deferred and a part of {} elements, got {}",
               range.size(),
               part.numel());
  memory->copy_part(tensor, part, range);
}

uint64_t identity_of_values(const at::Tensor& tensor) {
  const auto memory = deferred_memory(tensor);
  return memory == nullptr ? 0 : memory->identity();
}

}  // namespace argosy::engine
