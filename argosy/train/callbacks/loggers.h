#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/events/jsonl_writer.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/figures.h"

namespace argosy::train {

struct JsonlLoggerOptions {
  /// Empty: metrics.jsonl of the run's folder, which fit() writes by itself: nothing more is done.
  std::string path{};
  int64_t log_freq = 0;  ///< batches between two records of training; 0: fit()'s
};

/// Writes what happens to a file, a JSON object a line: the lines of a run's metrics.jsonl
/// (docs/reference/runs.md), of training every log_freq-th batch and of each evaluation. Written by
/// the first rank; figures of all ranks, but for input_wait, its own. A training that is resumed
/// goes on in the same file, from where it was resumed; one from the beginning moves a file that is
/// there to `path`.old.
/// Errors: UsageError without a path and a run folder; DataError when it cannot be written.
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
/// rate, the first rank's input_wait, and one column for each figure, an evaluation's with "eval_"
/// in front. Columns are those of the first epoch; a figure that comes later is left out, one that
/// is missing leaves its field empty. Written by the first rank. A resumed training goes on in the
/// same table, as with JsonlLogger.
/// Errors: as JsonlLogger; a table whose columns are others is a DataError.
class CsvLogger final : public Callback {
 public:
  explicit CsvLogger(CsvLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_train_batch_end(const Step& step) override;
  void on_epoch_end(const Epoch& epoch) override;

 private:
  CsvLoggerOptions options_;
  std::string path_;
  std::vector<std::string> columns_;
  double lr_ = 0;
};

}  // namespace argosy::train
