#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

struct ThroughputOptions {
  /// Returns the time since any fixed moment, for tests or to leave out pauses. Empty: the steady
  /// clock.
  std::function<std::chrono::nanoseconds()> clock{};
};

/// The samples per second of all ranks together, since construction or reset().
///
///     Throughput throughput;
///     throughput.update(logits, labels);         // counts labels.size(0) samples
///     double samples_per_s = throughput.compute(group);
///
/// The result is the samples of all ranks divided by the longest time of a rank, or NaN if no time
/// has passed. A state keeps the time too, so a stop before load_state() does not count.
/// Not thread-safe.
class Throughput final {
 public:
  explicit Throughput(ThroughputOptions options = {});

  /// Errors: UsageError for labels without a dimension.
  void update(const at::Tensor& output, const at::Tensor& labels);
  /// Errors: UsageError if `samples` is negative.
  void update(int64_t samples);

  /// Collective over `group`; an empty group means this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return {compute(group)};
  }
  /// Returns the number of samples of all ranks. Collective like compute().
  [[nodiscard]] int64_t count(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<std::string> names() const { return {"samples_per_s"}; }
  void reset();
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  /// Adds the samples and takes the longer time, as over ranks.
  void merge_state(const State& other);

 private:
  [[nodiscard]] std::chrono::nanoseconds elapsed() const { return options_.clock() - start_; }

  ThroughputOptions options_;
  std::chrono::nanoseconds start_{};
  int64_t samples_ = 0;
};

}  // namespace argosy::metrics
