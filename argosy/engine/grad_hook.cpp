#include "argosy/engine/grad_hook.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "argosy/base/check.h"

namespace argosy::engine {
namespace {

// shared_ptr<Node> in older libtorch, intrusive_ptr<Node> in newer.
using NodePtr = decltype(torch::autograd::impl::grad_accumulator(std::declval<at::Tensor>()));

class CallbackHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit CallbackHook(std::function<void()> callback) : callback_(std::move(callback)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    callback_();
    return outputs;
  }

 private:
  std::function<void()> callback_;
};

}  // namespace

struct GradHook::Impl {
  NodePtr node;
  std::uintptr_t key;
};

GradHook::GradHook() noexcept = default;
GradHook::GradHook(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
GradHook::GradHook(GradHook&&) noexcept = default;

GradHook& GradHook::operator=(GradHook&& other) noexcept {
  if (this != &other) {
    remove();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

GradHook::~GradHook() {
  remove();
}

void GradHook::remove() noexcept {
  if (impl_ != nullptr) {
    impl_->node->del_post_hook(impl_->key);
    impl_.reset();
  }
}

GradHook after_grad(const at::Tensor& leaf, std::function<void()> callback) {
  ARGOSY_CHECK(
      leaf.defined() && leaf.is_leaf() && leaf.requires_grad(),
      "engine.after_grad",
      "expected a leaf tensor that requires a gradient, got {}. Hook the parameter itself.",
      !leaf.defined()        ? "an undefined tensor"
      : leaf.requires_grad() ? "the result of an operation"
                             : "a tensor with requires_grad = false");
  ARGOSY_CHECK(callback != nullptr, "engine.after_grad", "the callback is empty");
  auto impl = std::make_unique<GradHook::Impl>();
  impl->node = torch::autograd::impl::grad_accumulator(leaf);
  impl->key = impl->node->add_post_hook(std::make_unique<CallbackHook>(std::move(callback)));
  return GradHook(std::move(impl));
}

void at_end_of_backward(std::function<void()> callback) {
  ARGOSY_CHECK(callback != nullptr, "engine.at_end_of_backward", "the callback is empty");
  try {
    torch::autograd::Engine::get_default_engine().queue_callback(std::move(callback));
  } catch (const c10::Error&) {  // 1.13 has no way to ask first
    throw UsageError("engine.at_end_of_backward",
                     "no backward pass runs in this thread. Call it inside an after_grad() "
                     "callback.");
  }
}

}  // namespace argosy::engine
