#include "argosy/engine/kept_results.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

namespace argosy::engine {
namespace {

/// Below autograd, and no part of libtorch uses it.
constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

struct Result {
  std::vector<int64_t> arguments{};  // their sizes
  std::vector<at::Tensor> tensors{};
  std::vector<int64_t> versions{};
};

/// The same memory in a tensor of its own, so that no graph hangs on it.
at::Tensor apart(const at::Tensor& tensor, const c10::VariableVersion& version) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      version, /*allow_tensor_metadata_change=*/true));
}

bool is_tensor(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::TensorType;
}

/// Whether an operator's results are its own, and the same each time.
bool can_be_kept(const c10::FunctionSchema& schema) {
  const auto aliases = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr;
  };
  const auto draws = [](const c10::Argument& argument) { return argument.name() == "generator"; };
  return !schema.returns().empty() && std::ranges::all_of(schema.returns(), is_tensor) &&
         std::ranges::none_of(schema.arguments(), aliases) &&
         std::ranges::none_of(schema.returns(), aliases) &&
         std::ranges::none_of(schema.arguments(), draws) &&
         schema.name().find("dropout") == std::string::npos &&
         schema.name().find("rand") == std::string::npos;  // rand_like has no generator
}

/// Whether this call of an attention or a recurrent layer drops something.
bool drops(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    const c10::IValue& value = torch::jit::peek(stack, i, schema.arguments().size());
    if ((name == "dropout_p" || name == "dropout") && value.isDouble() && value.toDouble() != 0) {
      return true;
    }
  }
  return false;
}

std::vector<int64_t> sizes_of(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  std::vector<int64_t> sizes;
  for (const c10::IValue& value : torch::jit::last(stack, schema.arguments().size())) {
    if (value.isTensor() && value.toTensor().defined()) {
      const at::Tensor& tensor = value.toTensor();
      sizes.push_back(tensor.dim());
      sizes.insert(sizes.end(), tensor.sizes().begin(), tensor.sizes().end());
    }
  }
  return sizes;
}

}  // namespace

struct KeptResults::State {
  Keeps keeps;
  std::unordered_map<std::string, bool> known{};  // by operator
  std::unordered_map<std::string, std::deque<Result>> results{};

  bool wants(const c10::FunctionSchema& schema) {
    const auto [place, is_new] =
        known.try_emplace(schema.name() + '.' + schema.overload_name(), false);
    if (is_new) {
      place->second = can_be_kept(schema) && keeps(schema.name());
    }
    return place->second;
  }
  void keep(const std::string& name,
            std::vector<int64_t> arguments,
            const torch::jit::Stack& stack,
            std::size_t count) {
    Result result{.arguments = std::move(arguments)};
    for (const c10::IValue& value : torch::jit::last(stack, count)) {
      const at::Tensor& tensor = value.toTensor();
      result.tensors.push_back(tensor.defined()
                                   ? apart(tensor, tensor.unsafeGetTensorImpl()->version_counter())
                                   : tensor);
      result.versions.push_back(tensor.defined() ? tensor._version() : 0);
    }
    results[name].push_back(std::move(result));
  }
  /// Puts what was kept in the place of the arguments.
  bool give(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
    std::deque<Result>& kept = results[schema.name()];
    if (kept.empty()) {
      return false;
    }
    const Result result = std::move(kept.front());
    kept.pop_front();
    bool same = result.arguments == sizes_of(schema, stack);
    for (std::size_t i = 0; i < result.tensors.size(); ++i) {
      same = same && (!result.tensors[i].defined() ||
                      static_cast<int64_t>(result.tensors[i]._version()) == result.versions[i]);
    }
    if (same) {
      torch::jit::drop(stack, schema.arguments().size());
      for (const at::Tensor& tensor : result.tensors) {
        stack.emplace_back(tensor.defined() ? apart(tensor, c10::VariableVersion(0)) : tensor);
      }
    }
    return same;
  }
};

namespace {

thread_local std::function<void(
    const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*)>* current = nullptr;

void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
}

void on_operator(const c10::OperatorHandle& op,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inner_ones_are_its_own(kKey);
  current != nullptr ? (*current)(op, keys, stack) : call(op, keys, stack);
}

/// Once, for the life of the process.
void listen() {
  static auto* const library = [] {
    auto* made =
        new torch::Library(torch::Library::IMPL, "_", c10::make_optional(kKey), __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&on_operator>());
    return made;
  }();
  (void)library;
}

template <typename Handler>
void with_handler(Handler handler, const std::function<void()>& body) {
  listen();
  std::function<void(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*)> each =
      std::move(handler);
  struct Restore {
    explicit Restore(decltype(current) former) : before(former) {}
    ~Restore() { current = before; }
    Restore(const Restore&) = delete;
    Restore& operator=(const Restore&) = delete;
    Restore(Restore&&) = delete;
    Restore& operator=(Restore&&) = delete;
    decltype(current) before;
  } const restore(std::exchange(current, &each));
  const c10::impl::IncludeDispatchKeyGuard heard(kKey);
  body();
}

}  // namespace

KeptResults::KeptResults(Keeps keeps) : state_(new State{.keeps = std::move(keeps)}) {}
KeptResults::~KeptResults() = default;

void KeptResults::first(const std::function<void()>& body) {
  with_handler(
      [this](const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        const c10::FunctionSchema& schema = op.schema();
        const bool wanted = state_->wants(schema) && !drops(schema, *stack);
        std::vector<int64_t> arguments = wanted ? sizes_of(schema, *stack) : std::vector<int64_t>();
        call(op, keys, stack);
        if (wanted) {
          state_->keep(schema.name(), std::move(arguments), *stack, schema.returns().size());
        }
      },
      body);
}

void KeptResults::again(const std::function<void()>& body) {
  with_handler(
      [this](const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        if (!state_->wants(op.schema()) || drops(op.schema(), *stack) ||
            !state_->give(op.schema(), *stack)) {
          call(op, keys, stack);
        }
      },
      body);
}

}  // namespace argosy::engine
