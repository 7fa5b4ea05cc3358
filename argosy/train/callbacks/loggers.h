#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/events/jsonl_writer.h"
#include "argosy/train/callback.h"

namespace argosy::train {

struct JsonlLoggerOptions {
  std::string path{};    ///< empty: metrics.jsonl in the run's folder
  int64_t log_freq = 0;  ///< batches between two records of training; 0: fit()'s
};

/// Appends what happens to a file, a JSON object a line: of training every log_freq-th batch
/// ({"split":"train","epoch":…,"batch":…,"step":…,"loss":…,"lr":…, metrics}) and of each epoch
/// ({"split":"epoch",…, figures, "seconds":…, "input_wait":…}). Written by the first rank; figures
/// of all ranks. A resumed run goes on in the same file. Errors: UsageError without a path and a
/// run folder; DataError when it cannot be written.
class JsonlLogger final : public Callback {
 public:
  explicit JsonlLogger(JsonlLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_train_batch_end(const Step& step) override;
  void on_epoch_end(const Epoch& epoch) override;

 private:
  JsonlLoggerOptions options_;
  int64_t log_freq_ = 10;
  std::shared_ptr<events::JsonlWriter> writer_;
};

struct CsvLoggerOptions {
  std::string path{};  ///< empty: epochs.csv in the run's folder
};

/// Appends the figures of each epoch to a table: epoch, step, seconds and one column for each
/// figure. Columns are those of the first epoch; a figure that comes later is left out, one that is
/// missing leaves its field empty. Written by the first rank.
/// Errors: as JsonlLogger; a file whose columns are others is a DataError.
class CsvLogger final : public Callback {
 public:
  explicit CsvLogger(CsvLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_epoch_end(const Epoch& epoch) override;

 private:
  CsvLoggerOptions options_;
  std::string path_;
  std::vector<std::string> columns_;
};

}  // namespace argosy::train
