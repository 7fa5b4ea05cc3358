#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace argosy::metrics {

/// What a metric has counted on this rank, to the bit. The state is integers, which fit into any
/// file, JSON too; doubles are written as their bit patterns. It begins with the options that must
/// agree.
///
///     State kept = accuracy.state();
///     …
///     accuracy.load_state(kept);      // into a metric with the same options
///
/// Each rank saves its own state, and after loading the value over all ranks is what it was. A job
/// that resumes with fewer ranks merges the states of the missing ranks into others, as torcheval's
/// merge_state() does:
///
///     accuracy.load_state(of_rank[0]);
///     accuracy.merge_state(of_rank[2]);   // as if this metric had counted those samples too
///
/// Errors: UsageError from both for a state that is damaged, or has another metric or other
/// options. The metric then stays unchanged.
using State = std::vector<int64_t>;

/// Reads a State from its start.
/// Errors: UsageError naming the metric, for a state that is too short or too long, has other
/// options, or a negative count.
class StateReader final {
 public:
  StateReader(std::string where, const State& state) : where_(std::move(where)), state_(state) {}

  [[nodiscard]] int64_t next();
  /// At least 0.
  [[nodiscard]] int64_t next_count();
  [[nodiscard]] State take(int64_t numbers);
  /// Checks that the next number is `own`, the option of the metric that reads.
  void expect(int64_t own, const char* option);
  /// Checks that everything has been read.
  void end() const;

 private:
  std::string where_;
  const State& state_;
  size_t at_ = 0;
};

/// Adds `more` to `counts`, element by element. Both come from states with the same options.
/// Errors: UsageError naming the metric if a sum exceeds int64; `counts` then stay unchanged.
void merge_counts(const char* where, std::span<int64_t> counts, std::span<const int64_t> more);

[[nodiscard]] int64_t bits_of(double value);
[[nodiscard]] double double_of(int64_t bits);

}  // namespace argosy::metrics
