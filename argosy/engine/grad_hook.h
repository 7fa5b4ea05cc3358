#pragma once

#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// Removes its hook when it goes: keep it as long as the hook is wanted. Move-only.
class [[nodiscard]] GradHook final {
 public:
  GradHook() noexcept;
  GradHook(GradHook&&) noexcept;
  GradHook& operator=(GradHook&&) noexcept;
  GradHook(const GradHook&) = delete;
  GradHook& operator=(const GradHook&) = delete;
  ~GradHook();

  /// Takes the hook off; idempotent. Not while a backward pass runs through the leaf.
  void remove() noexcept;
  [[nodiscard]] bool active() const noexcept { return impl_ != nullptr; }

 private:
  struct Impl;
  explicit GradHook(std::unique_ptr<Impl> impl) noexcept;
  friend GradHook after_grad(const at::Tensor&, std::function<void()>);
  std::unique_ptr<Impl> impl_;
};

/// Calls `callback` each time a backward pass has accumulated a gradient into `leaf.grad()`.
///
///     GradHook hook = after_grad(weight, [&] { reducer.mark_ready(index); });
///
/// The callback runs in the thread of autograd that did the accumulation: for CPU tensors the one
/// that called backward(), for others the device's. It runs once per pass, however often the leaf
/// was used, and not at all for a leaf that the pass does not reach, nor for
/// torch::autograd::grad(). Lifetime: the handle keeps the leaf and its accumulation node alive,
/// for libtorch itself holds
///   that node only as long as a graph does. A callback that owns its own handle is a leak.
/// Errors: UsageError when `leaf` is no leaf or requires no gradient. What the callback throws
///   comes out of backward() with its own type; the pass stops there.
GradHook after_grad(const at::Tensor& leaf, std::function<void()> callback);

/// Calls `callback` once, when the backward pass that now runs has finished and before backward()
/// returns, in the thread that called it. For use inside an after_grad() callback. In a nested pass
/// (activation checkpointing) it is the end of the innermost one.
/// Errors: UsageError outside of a backward pass. Exceptions come out of backward() with their
/// type.
void at_end_of_backward(std::function<void()> callback);

}  // namespace argosy::engine
