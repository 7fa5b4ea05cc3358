#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/events/timeline.h"
#include "argosy/train/callback.h"

namespace argosy::train {

struct TimelineLoggerOptions {
  /// The folder of the files, timeline.rank<k>.json. Empty: the run's folder.
  std::string folder{};
  /// Number of events of steps after which only every second step is written, then only every
  /// fourth, and so on. A long run is thus covered from its begin to its end.
  int64_t events_until_thinned = 10'000;
  /// The largest number of events, of some 100 bytes each.
  int64_t most_events = 200'000;
};

/// Writes how each rank spends its time (waiting for data, forward, backward, communication,
/// updates, evaluations, checkpoints) as traces for Perfetto, chrome://tracing and the run page.
///
///     model.fit(train, {.callbacks = {train::TimelineLogger({.folder = "runs/a"})}});
///
/// Each rank has its own file. With a run_dir, fit() adds a TimelineLogger itself. The lane
/// "communication" has "reduce", from the first bucket's start to the last one's end, beside
/// backward; "wait for gradients", the part of it that backward waits for; and "agree", the small
/// sums of losses and metrics, in which a fast rank waits for the slowest one. The file of an
/// earlier training is renamed to `earlier.…` and replaces an older one.
/// Cost: 0.5 µs per event, with four to seven events per step; 2.5 MB per rank for 10,000 steps,
/// and 0.9 MB more each time that their number doubles.
/// Errors: UsageError without a folder and a run folder; DataError if the file cannot be made.
class TimelineLogger final : public Callback {
 public:
  explicit TimelineLogger(TimelineLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_phase(const Phase& phase) override;
  void on_train_end(const Training& training) override;
  void on_exception(const Training& training, const std::string& what) override;

 private:
  TimelineLoggerOptions options_;
  std::shared_ptr<events::Timeline> timeline_;
  int64_t stride_ = 1;  // steps of which one is written
  int64_t until_thinner_ = 0;
};

}  // namespace argosy::train
