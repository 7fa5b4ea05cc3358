#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/events/timeline.h"
#include "argosy/train/callback.h"

namespace argosy::train {

struct TimelineOptions {
  /// The folder of the files, timeline.rank<k>.json; empty: the run's.
  std::string folder{};
  /// Events of steps after which only every second step is written down, then only every fourth,
  /// and so on: a long run is there from its begin to its end.
  int64_t events_until_thinned = 10'000;
  /// The end of all: some 100 bytes each.
  int64_t most_events = 200'000;
};

/// Writes what each rank's time goes into: waiting for data, forward, backward, communication,
/// updates, evaluations, checkpoints, as traces for Perfetto, chrome://tracing and the run page.
///
///     model.fit(train, {.callbacks = {train::Timeline({.folder = "runs/a"})}});
///
/// Each rank has its own file. With a run_dir fit() has one by itself. The lane "communication" has
/// "reduce", from the first bucket's start to the last one's end, which runs beside backward; "wait
/// for gradients", the part of it that backward waits for; and "agree", the small sums of losses
/// and metrics, in which a fast rank waits for the slowest one.
/// The file of an earlier training is renamed to `earlier.…`, in the place of an older one. Size:
/// 2.5 MB a rank for 10,000 steps, 0.9 MB more each time that their number doubles. Cost: 0.5 µs
/// for each of a step's four to seven events. Errors: UsageError without a folder and a run folder;
/// DataError when the file cannot be made.
class Timeline final : public Callback {
 public:
  explicit Timeline(TimelineOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_phase(const Phase& phase) override;
  void on_train_end(const Training& training) override;
  void on_exception(const Training& training, const std::string& what) override;

 private:
  TimelineOptions options_;
  std::shared_ptr<events::Timeline> timeline_;
  int64_t stride_ = 1;  // steps of which one is written
  int64_t until_thinner_ = 0;
};

}  // namespace argosy::train
