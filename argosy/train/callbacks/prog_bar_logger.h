#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "argosy/train/callback.h"

namespace argosy::train {

struct ProgBarLoggerOptions {
  /// As in FitOptions. Unset: fit()'s value.
  std::optional<int> verbose{};
  std::FILE* out = stdout;
  int columns = 0;  ///< width of a bar's line; 0: the terminal's width, or 80
  /// The clock, for tests.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Shows the progress of training on the first rank. fit() adds one itself (verbose = 2).
///
///     Epoch 1/5
///     step  10/938 - loss: 2.3026 - acc: 0.1094 - 13ms/step
///
/// verbose 1 draws a bar on a terminal, and writes the lines of 2 elsewhere. 2 writes a line every
/// log_freq batches. 3 adds "avg_reader_cost: 0.00012 sec - avg_batch_cost: 0.01 sec - ips: 1234.5
/// samples/sec" over the batches since the last line; the reader's cost is the first rank's. Where
/// batches are tokens, a line of training ends with "12,345 tokens/s" since the last one. Other
/// figures cover all ranks. The loss is that of the last update, a metric's value that of the epoch
/// so far (on a bar, up to the last log_freq-th batch).
/// Source of the format: Paddle 3.3, hapi/progressbar.py and hapi/callbacks.py.
class ProgBarLogger final : public Callback {
 public:
  explicit ProgBarLogger(ProgBarLoggerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_train_end(const Training& training) override;
  void on_epoch_begin(const Epoch& epoch) override;
  void on_epoch_end(const Epoch& epoch) override;
  void on_train_batch_end(const Step& step) override;
  void on_phase(const Phase& phase) override;
  void on_eval_begin(const Evaluation& evaluation) override;
  void on_eval_end(const Evaluation& evaluation) override;
  void on_eval_batch_end(const EvalStep& step) override;
  void on_predict_begin(const Evaluation& evaluation) override;
  void on_predict_end(const Evaluation& evaluation) override;
  void on_predict_batch_end(const EvalStep& step) override;

 private:
  struct Pass;  // over the batches of an epoch or an evaluation
  void begin(std::optional<int64_t> batches, int verbose, int64_t log_freq);
  void show(int64_t batch, const std::string& figures, int64_t samples, bool last);
  void end_line();
  void print(const std::string& line);

  ProgBarLoggerOptions options_;
  std::shared_ptr<Pass> pass_;
  int verbose_ = 2;
  int64_t log_freq_ = 10;
  std::optional<int64_t> batches_{};
};

}  // namespace argosy::train
