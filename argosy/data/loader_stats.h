#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "argosy/data/bad_samples.h"

namespace argosy::data {

/// Figures of one loop over a loader: how much it received, and who waited for whom.
///
///     for (auto& [images, labels] : loader) train_step(images, labels);
///     fmt::print("{}\n", loader.stats().to_string());
///     // epoch 0: 938 batches, 60000 samples in 5.21 s; input-bound: 12 % (waited 0.63 s, of it
///     // 0.02 s for the first batch); 24.1 MB of batches
struct LoaderStats {
  using Seconds = std::chrono::duration<double>;

  int64_t epoch = -1;   ///< -1: no loop has begun
  int64_t batches = 0;  ///< batches that the loop received
  int64_t samples = 0;  ///< samples in them
  Seconds waited{0};  ///< the loop waited for batches; with 0 threads, all the time of making them
  Seconds first_batch{0};  ///< the part of it until the first batch
  Seconds used{
      0};  ///< time between receiving a batch and asking for the next, which is the training's own
  BadSamples bad{};       ///< see OnError
  size_t pool_bytes = 0;  ///< memory of batches now, those in use and those that wait

  /// Returns the share of the loop's time that it waited, 0 to 1. 0 without a loop.
  [[nodiscard]] double input_bound() const;
  [[nodiscard]] std::string to_string() const;
};

namespace detail {

/// Reads the clock twice per batch: when the loop asks, and when it gets the batch.
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
