#pragma once

#include <cstdint>
#include <span>

namespace argosy::ps {

/// When a server applies what workers push, and what they see.
enum class UpdateMode : uint8_t {
  kSync,       ///< when all have pushed: the average, as with collectives
  kAsync,      ///< at once
  kHalfAsync,  ///< at once, but nobody is more than `staleness` pushes ahead of the slowest
  kGeo,        ///< at once, as a difference that is added: the workers have trained by themselves
};

/// What a server does about a late gradient: others have changed the weights since its worker read
/// them. The staleness τ is the number of their steps in between.
struct LateOptions {
  /// Divides the learning rate of a push by τ, where that is 2 or more. Source: Zhang, Gupta, Lian
  /// and Liu, "Staleness-aware Async-SGD for Distributed Deep Learning", IJCAI 2016.
  bool scales_rates = false;
  /// λ: the gradient g becomes g + λ·g⊙g⊙(w_now − w_read). 0: off. Source: Zheng et al.,
  /// "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017.
  double compensation = 0;

  [[nodiscard]] bool any() const { return scales_rates || compensation > 0; }
  /// Errors: UsageError for a λ below 0, or in a mode in which no gradient is late.
  void validate(UpdateMode mode) const;
};

/// Returns the rate of a push with that staleness.
[[nodiscard]] double rate_of_late(double lr, uint64_t staleness);

/// Weights when a gradient was computed, and when it is applied, f32 [n] each.
struct WeightChange {
  std::span<const float> read{};
  std::span<const float> now{};
};
/// Changes a gradient, f32 [n], by g + λ·g⊙g⊙(now − read).
void compensate(std::span<float> gradient, const WeightChange& weights, double lambda);

}  // namespace argosy::ps
