#include "argosy/engine/late_results.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/accumulate.h>
#include <c10/util/hash.h>

#include "argosy/engine/coming_memory.h"
#include "argosy/engine/computed_twice.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/operator_call.h"

namespace argosy::engine {
namespace {

/// What costs much and whose result no gradient needs, and what leads from there to the end of a
/// layer. Kernels of one's own write into the results of other operators, such as empty().
constexpr std::array<std::string_view, 7> kCanBeLate{"aten::mm",
                                                     "aten::addmm",
                                                     "aten::bmm",
                                                     "aten::baddbmm",
                                                     "aten::convolution",
                                                     "aten::_unsafe_view",
                                                     "aten::add"};

bool can_be_late(const c10::FunctionSchema& schema) {
  return std::ranges::find(kCanBeLate, schema.name()) != kCanBeLate.end() && is_function(schema) &&
         schema.returns().size() == 1;
}

bool is_view(const c10::FunctionSchema& schema) {
  const auto views = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && !argument.alias_info()->isWrite();
  };
  return std::ranges::any_of(schema.returns(), views);
}

}  // namespace

/// The memory of a late result.
class LateResults::Late final : public ComingMemory {
 public:
  Late(const c10::OperatorHandle& op,
       c10::DispatchKeySet keys,
       torch::jit::Stack arguments,
       const Expected& expected,
       std::shared_ptr<Error> error)
      : op_(op),
        keys_(keys),
        stack_(std::move(arguments)),
        expected_(expected),
        error_(std::move(error)) {}

  void before_use(bool /*writes*/) noexcept override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_there_, true)) {
      return;
    }
    const c10::impl::ExcludeDispatchKeyGuard unheard(kHeardOf);
    try {
      settle(compute());
    } catch (...) {
      {
        const std::lock_guard error_lock(error_->mutex);
        error_->first = error_->first == nullptr ? std::current_exception() : error_->first;
      }
      lend_nothing();
    }
    stack_.clear();
  }
  void after_use() noexcept override {}
  void before_operator(const at::RecordFunction& function, bool writes) noexcept override {
    const LateResults* const running = ComputedTwice::running();
    if (writes || running == nullptr || running->error_ != error_ ||
        !running->expects(function.name())) {
      before_use(writes);
    }
  }

 private:
  at::Tensor compute() {
    const at::AutoDispatchBelowADInplaceOrView below;
    const c10::impl::ExcludeDispatchKeyGuard as_given(c10::autocast_dispatch_keyset);
    std::vector<at::Tensor> used;
    for (const c10::IValue& value : stack_) {
      if (value.isTensor()) {
        used.push_back(value.toTensor());
      }
    }
    const DirectUse use(used);
    op_.redispatchBoxed(keys_, &stack_);
    at::Tensor result = stack_.back().toTensor();
    if (result.sizes() == at::IntArrayRef(expected_.sizes) &&
        result.strides() == at::IntArrayRef(expected_.strides) &&
        result.dtype() == expected_.options.dtype()) {
      return result;
    }
    return at::empty_strided(expected_.sizes, expected_.strides, expected_.options).copy_(result);
  }

  std::mutex mutex_{};
  bool is_there_ = false;
  c10::OperatorHandle op_;
  c10::DispatchKeySet keys_;
  torch::jit::Stack stack_;
  Expected expected_;
  std::shared_ptr<Error> error_;
};

void LateResults::pass(const c10::FunctionSchema& schema, const std::vector<int64_t>& sizes) {
  passed_ = c10::get_hash(passed_, schema.name(), schema.overload_name(), sizes);
}

void LateResults::end_begins() {
  if (!is_second_) {
    end_.clear();
    before_end_ = passed_;
  } else if (passed_ == before_end_) {
    next_ = 0;
  }
}

void LateResults::note(const c10::FunctionSchema& schema,
                       const std::vector<int64_t>& sizes,
                       const torch::jit::Stack& stack) {
  if (is_view(schema)) {
    return;
  }
  pass(schema, sizes);
  const at::Tensor result = can_be_late(schema) ? stack.back().toTensor() : at::Tensor();
  if (!is_dense(result) || !result.is_cpu()) {
    end_begins();
    return;
  }
  end_.push_back({schema.name(),
                  sizes,
                  result.sizes().vec(),
                  result.strides().vec(),
                  result.options().requires_grad(c10::nullopt)});
}

void LateResults::begin_again() {
  passed_ = 0;
  is_second_ = true;
  next_.reset();
  made_.clear();
  error_ = std::make_shared<Error>();
  end_begins();
}

bool LateResults::expects(const char* name) const {
  return next_.has_value() && *next_ < end_.size() && end_[*next_].name == name;
}

bool LateResults::is_next(const c10::FunctionSchema& schema, const std::vector<int64_t>& sizes) {
  pass(schema, sizes);
  if (expects(schema.name().c_str()) && end_[*next_].arguments == sizes) {
    ++*next_;
    return true;
  }
  compute_all();
  end_begins();
  return false;
}

void LateResults::skip(const c10::FunctionSchema& schema, const std::vector<int64_t>& sizes) {
  (void)is_next(schema, sizes);
}

bool LateResults::give(const c10::OperatorHandle& op,
                       c10::DispatchKeySet keys,
                       const std::vector<int64_t>& sizes,
                       torch::jit::Stack& stack) {
  const c10::FunctionSchema& schema = op.schema();
  if (is_view(schema) || !is_next(schema, sizes)) {
    return false;
  }
  const Expected& expected = end_[*next_ - 1];
  torch::jit::Stack arguments = torch::jit::pop(stack, schema.arguments().size());
  for (c10::IValue& value : arguments) {
    if (value.isTensor() && value.toTensor().defined()) {
      const at::Tensor tensor = value.toTensor();
      value = apart(tensor, tensor.unsafeGetTensorImpl()->version_counter());
    }
  }
  const auto late = std::make_shared<Late>(op, keys, std::move(arguments), expected, error_);
  const at::AutoDispatchBelowADInplaceOrView below;
  stack.emplace_back(late->make_flat(c10::multiply_integers(expected.sizes), expected.options)
                         .as_strided(expected.sizes, expected.strides));
  made_.push_back(late);
  return true;
}

void LateResults::interrupt() {
  passed_ = c10::get_hash(passed_, std::string("a computation within"));
  compute_all();
  end_begins();
}

/// What comes now was not foreseen, and may write what late results still have to read.
void LateResults::compute_all() {
  next_.reset();
  for (const std::weak_ptr<Late>& each : std::exchange(made_, {})) {
    if (const std::shared_ptr<Late> late = each.lock()) {
      late->before_use(false);
    }
  }
}

void LateResults::finish() {
  compute_all();
  const std::lock_guard lock(error_->mutex);
  if (error_->first != nullptr) {
    std::rethrow_exception(error_->first);
  }
}

}  // namespace argosy::engine
