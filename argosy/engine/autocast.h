#pragma once

#include <array>
#include <optional>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// Options of an Autocast. Names are those of torch.autocast.
struct AutocastOptions {
  at::DeviceType device = at::kCPU;
  /// The dtype in which matrix products and convolutions compute. Unset: as outside, where it is at
  /// first bfloat16 on the CPU and float16 on CUDA.
  std::optional<at::ScalarType> dtype{};
  /// False switches to full precision inside another Autocast and ignores dtype.
  bool enabled = true;
  /// Cast each weight once for all its uses inside the outermost Autocast. Unset: as outside, where
  /// it is at first true.
  std::optional<bool> cache{};
};

/// Mixed precision while it lives: libtorch's operators themselves choose what to compute in 16
/// bits (products, convolutions) and what in 32. Parameters and their gradients stay f32.
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
/// It acts only on what its thread computes, and must end in that thread. Other threads (loaders,
/// other models) do not see it. An exception also restores the former state. Guards end in the
/// reverse order of their beginning, as scopes do.
/// Inside one region, a weight that was first used under at::NoGradGuard is later taken from the
/// cache without its gradient, as in PyTorch. Give computations without gradients a region of their
/// own.
/// Source: torch/amp/autocast_mode.py of 2.x, with the same steps in the same order.
class Autocast final {
 public:
  /// Errors: UsageError for a dtype that the device has no operators for (see can_autocast()), or
  /// for a device that this machine does not have.
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

/// While it lives, casts are not cached. For computations without gradients inside somebody else's
/// region, which must leave no trace in it.
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

/// The choices of this thread's Autocasts at its construction, for threads that work for this one.
/// at::ThreadLocalState carries over whether a thread computes in mixed precision, but no dtype.
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

/// While it lives, its thread computes as the thread whose state it was given. Casts are not
/// cached, because nobody would release them.
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

/// True if this thread computes in mixed precision on the device.
[[nodiscard]] bool is_autocast_enabled(at::DeviceType device = at::kCPU);
/// Returns the dtype of mixed precision there, also while it is off.
[[nodiscard]] at::ScalarType autocast_dtype(at::DeviceType device = at::kCPU);

/// True if the device has operators for mixed precision in `dtype`. On the CPU only bfloat16:
/// libtorch 1.13 has no float16 convolutions and products there, and those of newer versions are
/// slow. On CUDA float16 and bfloat16.
[[nodiscard]] bool can_autocast(at::DeviceType device, at::ScalarType dtype);

}  // namespace argosy::engine
