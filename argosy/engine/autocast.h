#pragma once

#include <array>
#include <optional>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// What an Autocast does. Names are those of torch.autocast.
struct AutocastOptions {
  at::DeviceType device = at::kCPU;
  /// What matrix products and convolutions compute in. Unset: as outside, which is bfloat16 on the
  /// CPU and float16 on CUDA.
  std::optional<at::ScalarType> dtype{};
  /// false: full precision again, inside another Autocast; dtype is not looked at.
  bool enabled = true;
  /// Whether a weight is cast once for all its uses inside the outermost Autocast. Unset: as
  /// outside, which is yes.
  std::optional<bool> cache{};
};

/// Mixed precision while it lives: libtorch's operators choose by themselves what is computed in 16
/// bits (products, convolutions) and what stays in 32. Parameters and their gradients stay f32.
///
///     at::Tensor loss;
///     {
///       const engine::Autocast autocast;                      // bfloat16 on the CPU
///       const at::Tensor logits = net->forward(images);       // bfloat16
///       const engine::Autocast off({.enabled = false});       // an inner one can switch it off
///       loss = torch::nn::functional::cross_entropy(logits.to(at::kFloat), labels);
///     }
///     loss.backward();                                        // outside, as PyTorch advises
///
/// Belongs to the thread: it acts on what this thread computes, and must end in the thread that it
/// began in; other threads (loaders, other models) do not see it. An end by an exception puts
/// everything back too. Guards end in the opposite order of their beginning, as scopes do.
/// Inside one region a weight that was first used under at::NoGradGuard is taken from the cache
/// afterwards, without its gradient, as in PyTorch: give what computes without gradients a region
/// of its own.
/// Source: torch/amp/autocast_mode.py of 2.x, whose steps are taken in the same order.
class Autocast final {
 public:
  /// Errors: UsageError: a dtype that the device has no operators for (see can_autocast()), or no
  /// such device here.
  explicit Autocast(const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  Autocast(Autocast&&) = delete;
  Autocast& operator=(Autocast&&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_;  // as outside, likewise below
  at::ScalarType dtype_;
  bool cache_;
};

/// While it lives casts are not kept: for what computes without gradients inside somebody else's
/// region and must leave no trace in it.
class AutocastUncached final {
 public:
  AutocastUncached();
  ~AutocastUncached();
  AutocastUncached(const AutocastUncached&) = delete;
  AutocastUncached& operator=(const AutocastUncached&) = delete;
  AutocastUncached(AutocastUncached&&) = delete;
  AutocastUncached& operator=(AutocastUncached&&) = delete;

 private:
  bool cache_;  // as outside
};

/// What the Autocasts of this thread have chosen, when it is made: for threads that work for it.
/// at::ThreadLocalState takes along whether they compute in mixed precision, but not in what.
class AutocastState final {
 public:
  AutocastState();

 private:
  friend class AutocastStateGuard;
  struct Choice {
    at::DeviceType device;
    bool enabled;
    at::ScalarType dtype;
  };
  void apply() const;

  std::array<Choice, 2> choices_;
};

/// While it lives its thread computes as the one whose state it is. Casts are not kept: nobody
/// would let go of them.
class AutocastStateGuard final {
 public:
  explicit AutocastStateGuard(const AutocastState& state);
  ~AutocastStateGuard();
  AutocastStateGuard(const AutocastStateGuard&) = delete;
  AutocastStateGuard& operator=(const AutocastStateGuard&) = delete;
  AutocastStateGuard(AutocastStateGuard&&) = delete;
  AutocastStateGuard& operator=(AutocastStateGuard&&) = delete;

 private:
  AutocastState before_;
  AutocastUncached uncached_;
};

/// Whether this thread computes in mixed precision on the device.
[[nodiscard]] bool is_autocast_enabled(at::DeviceType device = at::kCPU);
/// What it computes in there, or would.
[[nodiscard]] at::ScalarType autocast_dtype(at::DeviceType device = at::kCPU);

/// CPU: bfloat16 alone: libtorch 1.13 has no float16 convolutions and products there, and what
/// newer ones have is slow. CUDA: float16 and bfloat16.
[[nodiscard]] bool can_autocast(at::DeviceType device, at::ScalarType dtype);

}  // namespace argosy::engine
