#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "argosy/data/bad_samples.h"

namespace argosy::data {

/// What one loop over a loader was like: how much it received, and who waited for whom.
///
///     for (auto& [images, labels] : loader) train_step(images, labels);
///     fmt::print("{}\n", loader.stats().to_string());
///     // epoch 0: 938 batches, 60000 samples in 5.21 s; input-bound: 12 % (waited 0.63 s, of it
///     // 0.02 s for the first batch); 24.1 MB of batches
struct LoaderStats {
  using Seconds = std::chrono::duration<double>;

  int64_t epoch = -1;      ///< -1: no loop has begun
  int64_t batches = 0;     ///< that the loop received
  int64_t samples = 0;     ///< in them
  Seconds waited{0};       ///< the loop waited for batches; all of their making with 0 threads
  Seconds first_batch{0};  ///< of it: until the first one
  Seconds used{0};         ///< between a batch and the wish for the next: the training's own time
  BadSamples bad{};        ///< see OnError
  size_t pool_bytes = 0;   ///< memory of batches now, those in use and those that wait

  /// The share of the loop's time that it waited, 0 to 1; 0 without a loop.
  [[nodiscard]] double input_bound() const;
  [[nodiscard]] std::string to_string() const;
};

namespace detail {

/// Two readings a batch: when the loop asks, and when it has.
class LoopClock final {
 public:
  void begin(LoaderStats& stats, int64_t epoch);
  void asks(LoaderStats& stats);
  void has(LoaderStats& stats);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_{};
  bool first_ = true;
};

}  // namespace detail

}  // namespace argosy::data
