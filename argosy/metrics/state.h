#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace argosy::metrics {

/// What a metric has counted so far on this rank, to the bit: integers that any file holds, JSON
/// too. Doubles stand in it as their bit patterns. It begins with the options that must agree.
///
///     State kept = accuracy.state();
///     …
///     accuracy.load_state(kept);      // of a metric made with the same options
///
/// Each rank keeps its own: after loading, the value over all ranks is what it was. The sum over
/// ranks is what counts: a job that goes on with fewer ranks merges the states of those that are
/// gone into others, as torcheval's merge_state() does:
///
///     accuracy.load_state(of_rank[0]);
///     accuracy.merge_state(of_rank[2]);   // as if this metric had counted those samples too
///
/// Errors: UsageError from both, for a state of another metric, of other options or damaged; the
/// metric is then what it was.
using State = std::vector<int64_t>;

/// Reads a State from its start. Errors: UsageError naming the metric, for a state that is cut
/// short, too long, of other options or with a count below zero.
class StateReader final {
 public:
  StateReader(std::string where, const State& state) : where_(std::move(where)), state_(state) {}

  [[nodiscard]] int64_t next();
  /// At least 0.
  [[nodiscard]] int64_t next_count();
  [[nodiscard]] State take(int64_t numbers);
  /// The next number must be `own`, the option of the metric that reads.
  void expect(int64_t own, const char* option);
  /// All must have been read.
  void end() const;

 private:
  std::string where_;
  const State& state_;
  size_t at_ = 0;
};

/// Adds `more` to `counts`, one to one: both come from states of the same options.
/// Errors: UsageError naming the metric when a sum is no int64 any more; `counts` are then what
/// they were.
void merge_counts(const char* where, std::span<int64_t> counts, std::span<const int64_t> more);

[[nodiscard]] int64_t bits_of(double value);
[[nodiscard]] double double_of(int64_t bits);

}  // namespace argosy::metrics
