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
  /// Time since any fixed moment; empty: the steady clock. For tests, and to leave out pauses.
  std::function<std::chrono::nanoseconds()> clock{};
};

/// Samples per second of all ranks together, since construction or reset().
///
///     Throughput throughput;
///     throughput.update(logits, labels);         // counts labels.size(0) samples
///     double samples_per_s = throughput.compute(group);
///
/// All ranks' samples over the longest time of a rank. No time has passed: NaN.
/// A state keeps the time too: after load_state() a stop between the two does not count.
/// Not thread-safe.
class Throughput final {
 public:
  explicit Throughput(ThroughputOptions options = {});

  /// Errors: UsageError for labels without a dimension.
  void update(const at::Tensor& output, const at::Tensor& labels);
  /// Errors: UsageError for a negative number.
  void update(int64_t samples);

  /// Collective over `group`; an empty group: this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return {compute(group)};
  }
  /// Samples seen by all ranks. Collective like compute().
  [[nodiscard]] int64_t count(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<std::string> names() const { return {"samples_per_s"}; }
  void reset();
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  /// The samples of both, and the longer time, as over ranks.
  void merge_state(const State& other);

 private:
  [[nodiscard]] std::chrono::nanoseconds elapsed() const { return options_.clock() - start_; }

  ThroughputOptions options_;
  std::chrono::nanoseconds start_{};
  int64_t samples_ = 0;
};

}  // namespace argosy::metrics
