#include "argosy/engine/computed_twice.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "argosy/engine/kept_results.h"
#include "argosy/engine/late_results.h"
#include "argosy/engine/operator_call.h"

namespace argosy::engine {
namespace {

using Handler =
    std::function<void(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*)>;

/// What hears of this thread's operators.
struct Listener {
  const Handler* handler = nullptr;
  LateResults* late = nullptr;
};
thread_local Listener current{};

c10::DispatchKeySet below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kHeardOf);
}

void on_operator(const c10::OperatorHandle& op,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inner_ones_are_its_own(kHeardOf);
  if (current.handler != nullptr) {
    (*current.handler)(op, below(keys), stack);
  } else {
    op.redispatchBoxed(below(keys), stack);
  }
}

/// Once, for the life of the process.
void listen() {
  static auto* const library = [] {
    auto* made = new torch::Library(
        torch::Library::IMPL, "_", c10::make_optional(kHeardOf), __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&on_operator>());
    return made;
  }();
  (void)library;
}

/// Runs the body while the handler hears of its operators, and nobody else does.
void with_handler(const Handler& handler, LateResults* late, const std::function<void()>& body) {
  listen();
  if (current.late != nullptr) {
    current.late->interrupt();
  }
  struct Restore {
    explicit Restore(Listener former) : before(former) {}
    ~Restore() { current = before; }
    Restore(const Restore&) = delete;
    Restore& operator=(const Restore&) = delete;
    Restore(Restore&&) = delete;
    Restore& operator=(Restore&&) = delete;
    Listener before;
  } const restore(std::exchange(current, {&handler, late}));
  const c10::impl::IncludeDispatchKeyGuard heard(kHeardOf);
  body();
}

}  // namespace

struct ComputedTwice::State {
  explicit State(ComputedTwiceOptions options)
      : kept(std::move(options.keeps)),
        late(options.early_stop ? std::make_unique<LateResults>() : nullptr) {}

  KeptResults kept;
  std::unique_ptr<LateResults> late;
};

ComputedTwice::ComputedTwice(ComputedTwiceOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ComputedTwice::~ComputedTwice() = default;

const LateResults* ComputedTwice::running() {
  return current.late;
}

void ComputedTwice::first(const std::function<void()>& body) {
  const Handler handler =
      [this](const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        const c10::FunctionSchema& schema = op.schema();
        std::vector<int64_t> sizes = sizes_of_arguments(schema, *stack);
        const bool wanted = state_->kept.wants(schema, *stack);
        op.redispatchBoxed(keys, stack);
        if (state_->late != nullptr) {
          state_->late->note(schema, sizes, *stack);
        }
        if (wanted) {
          state_->kept.keep(schema, std::move(sizes), *stack);
        }
      };
  with_handler(handler, state_->late.get(), body);
}

void ComputedTwice::again(const std::function<void()>& body) {
  if (state_->late != nullptr) {
    state_->late->begin_again();
  }
  const Handler handler =
      [this](const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        const c10::FunctionSchema& schema = op.schema();
        const std::vector<int64_t> sizes = sizes_of_arguments(schema, *stack);
        LateResults* const late = state_->late.get();
        if (state_->kept.wants(schema, *stack) && state_->kept.give(schema, sizes, *stack)) {
          if (late != nullptr) {
            late->skip(schema, sizes);
          }
        } else if (late == nullptr || !late->give(op, keys, sizes, *stack)) {
          op.redispatchBoxed(keys, stack);
        }
      };
  with_handler(handler, state_->late.get(), body);
}

void ComputedTwice::finish() {
  if (state_->late != nullptr) {
    state_->late->finish();
  }
}

}  // namespace argosy::engine
