#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/events/jsonl_writer.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/figures.h"

namespace argosy::train {

struct JsonlLoggerOptions {
  /// Empty: metrics.jsonl of the run's folder. fit() writes that file itself, so nothing more is
  /// done.
  std::string path{};
  int64_t log_freq = 0;  ///< batches between two records of training; 0: fit()'s log.freq
};

/// Writes the figures of every log_freq-th batch and of each evaluation to a file, one JSON object
/// per line, as in a run's metrics.jsonl (docs/reference/runs.md). The first rank writes. Figures
/// cover all ranks, except input_wait, which is the first rank's. A resumed training continues the
/// file from where it resumes. A new training first renames an existing file to `path`.old.
/// Errors: UsageError without a path and a run folder; DataError if the file cannot be written.
class JsonlLogger final : public Callback {
 public:
  explicit JsonlLogger(JsonlLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_epoch_begin(const Epoch& epoch) override;
  void on_train_batch_end(const Step& step) override;
  void on_epoch_end(const Epoch& epoch) override;
  void on_phase(const Phase& phase) override;

 private:
  JsonlLoggerOptions options_;
  detail::TrainWindow window_{};
  std::shared_ptr<events::JsonlWriter> writer_;
};

struct CsvLoggerOptions {
  std::string path{};  ///< empty: epochs.csv in the run's folder
};

/// Writes the figures of each epoch to a table: epoch (from 1), step, seconds, the last learning
/// rate, the first rank's input_wait, and one column per figure, an evaluation's with "eval_" in
/// front. A figure that first appears in a later epoch adds a column; missing ones leave their
/// fields empty. The first rank writes. A resumed training continues the table, as with
/// JsonlLogger.
/// Errors: as JsonlLogger; DataError for a file that is no such table.
class CsvLogger final : public Callback {
 public:
  explicit CsvLogger(CsvLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_train_batch_end(const Step& step) override;
  void on_epoch_end(const Epoch& epoch) override;

 private:
  CsvLoggerOptions options_;
  std::string path_;
  double lr_ = 0;
};

}  // namespace argosy::train
