#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "argosy/runs/best_effort_writer.h"
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_page.h"
#include "argosy/train/callbacks/eval_samples.h"
#include "argosy/train/callbacks/loggers.h"
#include "argosy/train/callbacks/timeline_logger.h"
#include "argosy/train/counted.h"

namespace argosy::train::detail {

/// How this rank spends its time, for its line in the table of ranks.
class RankFigures final {
 public:
  using Clock = std::chrono::steady_clock;

  void begin_epoch() { mark_ = Clock::now(); }
  void add(const Phase& phase);
  void add(const Step& step);
  /// Returns an object whose names docs/reference/runs.md lists.
  [[nodiscard]] nlohmann::ordered_json about(const Model& model) const;

 private:
  Clock::time_point mark_{};
  double seconds_ = 0;  // of training, without evaluations
  double input_ = 0;
  double communication_ = 0;
  int64_t samples_ = 0;  // of this rank
  Counted counted_{};    // what they are
};

/// Writes the folder of a run, as docs/reference/runs.md describes it. fit() adds this callback if
/// it has a run_dir.
/// The first rank writes run.json, metrics.jsonl, samples/epoch <n>.json and index.html; it writes
/// the last one at most every five seconds and for at most 1 % of the time. Each rank writes its
/// rank<k>.json, and its timeline unless the user gave a TimelineLogger. A training that resumes at
/// a later step keeps the run's start and the figures up to there. Errors: DataError at the start
/// of training if the folder cannot be written. Later, a full disk is logged once and ends no
/// training.
class RunRecorder final : public Callback {
 public:
  explicit RunRecorder(std::string folder);

  void on_train_begin(const Training& training) override;
  void on_train_end(const Training& training) override;
  void on_exception(const Training& training, const std::string& what) override;
  void on_epoch_begin(const Epoch& epoch) override;
  void on_epoch_end(const Epoch& epoch) override;
  void on_train_batch_end(const Step& step) override;
  void on_phase(const Phase& phase) override;
  void on_eval_begin(const Evaluation& evaluation) override;
  void on_eval_batch_end(const EvalStep& step) override;
  void on_eval_end(const Evaluation& evaluation) override;

 private:
  /// True if the record says that the run ended, other than by a signal. After a signal the record
  /// must be put right.
  [[nodiscard]] bool is_recorded_as_ended() const;
  void begin_run(const Training& training);
  struct End {
    runs::RunState state = runs::RunState::kFinished;
    std::string why{};
    std::optional<int> exit_code{};
  };
  void end_run(const Model& model, const End& end);
  /// Returns the message of the rank that failed first, if its file is on this host.
  [[nodiscard]] std::string first_cause() const;
  void write_now_and_then(const Model& model);
  void write_all(const Model& model);

  std::string folder_;
  JsonlLogger log_;
  std::optional<TimelineLogger> timeline_{};
  RankFigures rank_{};
  EvalSamples samples_{};
  std::optional<runs::RunConfig> config_{};  // of the first rank
  runs::RunPage page_;
  runs::BestEffortWriter writer_{};
  int64_t epoch_ = 0;    // from 1
  std::string error_{};  // of this rank
  std::chrono::system_clock::time_point error_at_{};
  bool begun_ = false;
  bool ended_before_ = false;  // with nothing left to do: its record stays
};

}  // namespace argosy::train::detail
