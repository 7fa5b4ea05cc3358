#pragma once

#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// Removes its hook at its end: keep it as long as the hook is needed. Move-only.
class [[nodiscard]] GradHook final {
 public:
  GradHook() noexcept;
  GradHook(GradHook&&) noexcept;
  GradHook& operator=(GradHook&&) noexcept;
  GradHook(const GradHook&) = delete;
  GradHook& operator=(const GradHook&) = delete;
  ~GradHook();

  /// Removes the hook; idempotent. Do not call it while a backward pass runs through the leaf.
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
/// The callback runs in autograd's thread that did the accumulation: for CPU tensors the one that
/// called backward(), for others the device's. It runs once per pass, however often the leaf was
/// used. It does not run for a leaf that the pass does not reach, nor for torch::autograd::grad().
/// Lifetime: the handle keeps the leaf and its accumulation node alive, because libtorch itself
///   holds that node only as long as a graph does. A callback that owns its own handle is a leak.
/// Errors: UsageError if `leaf` is not a leaf or does not require a gradient. An exception of the
///   callback leaves backward() with its own type; the pass stops there.
GradHook after_grad(const at::Tensor& leaf, std::function<void()> callback);

/// Calls `callback` once, after the running backward pass has finished and before backward()
/// returns, in the thread that called it. Use it inside an after_grad() callback. In a nested pass
/// (activation checkpointing) it is the end of the innermost one.
/// Errors: UsageError outside a backward pass. Exceptions leave backward() with their type.
void at_end_of_backward(std::function<void()> callback);

}  // namespace argosy::engine
