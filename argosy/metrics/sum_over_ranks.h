#pragma once

#include "argosy/base/exact_sum.h"
#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

/// An ExactSum whose terms several ranks have: N ranks that add their parts get the bits that one
/// process gets. Not thread-safe.
class SumOverRanks final {
 public:
  void add(double term) { sum_.add(term); }
  void reset() { sum_ = {}; }
  [[nodiscard]] double value() const { return sum_.value(); }

  /// The sum over the ranks, on every rank. An empty group: this sum itself.
  /// Collective over `group`.
  [[nodiscard]] SumOverRanks all_reduced(const comm::Group& group) const;

  /// 71 numbers, the same for the same sum however it was reached.
  [[nodiscard]] State state() const;
  /// Errors: UsageError for what is no state of a sum.
  void load_state(const State& state);
  /// Adds the terms of another sum.
  void merge_state(const State& other);

 private:
  ExactSum sum_{};
};

}  // namespace argosy::metrics
