#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "argosy/train/callback.h"
#include "argosy/train/counted.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// The figures of training since the last record, for loggers.
struct TrainFigures {
  int64_t step = 0;
  int64_t epoch = 0;              ///< from 1
  double loss = 0;                ///< loss of the last update
  double lr = 0;                  ///< its learning rate
  double samples_per_second = 0;  ///< of all ranks
  Counted counted{};              ///< what a sample is
  double input_wait = 0;          ///< this rank's share of the time, 0 to 1
  Logs metrics{};                 ///< since the epoch's begin; empty if there are no new values

  /// The speed as records have it: images, tokens or samples per second.
  [[nodiscard]] double rate() const {
    return samples_per_second * static_cast<double>(counted.in_a_sample);
  }
};

/// Collects batches of training and says when a record is due: with the first update at or after
/// each log_freq-th batch, and with each epoch's last one. The time of evaluations does not count.
class TrainWindow final {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TrainWindow(int64_t log_freq = 10, std::function<Clock::time_point()> now = Clock::now)
      : log_freq_(log_freq), now_(std::move(now)) {}

  void begin_epoch();
  void add(const Phase& phase);
  /// Returns nullopt if no record is due.
  [[nodiscard]] std::optional<TrainFigures> add(const Step& step);

 private:
  int64_t log_freq_;
  std::function<Clock::time_point()> now_;
  Clock::time_point begun_{};
  double waited_ = 0;
  int64_t samples_ = 0;
  Counted counted_{};
  bool due_ = false;
  Logs metrics_;
};

/// Returns the evaluation's figures of an epoch, without "eval_" in front. Empty without an
/// evaluation.
[[nodiscard]] Logs evaluation_in(const Logs& epoch);

/// Lines of metrics.jsonl, as docs/reference/runs.md describes them.
[[nodiscard]] nlohmann::ordered_json train_record(const TrainFigures& figures);
[[nodiscard]] nlohmann::ordered_json eval_record(int64_t step,
                                                 int64_t epoch,
                                                 const Logs& evaluation);

}  // namespace argosy::train::detail
