#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "argosy/train/callback.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// What training was like since the record before: what loggers write down.
struct TrainFigures {
  int64_t step = 0;
  int64_t epoch = 0;              ///< from 1, as people count
  double loss = 0;                ///< of the last update
  double lr = 0;                  ///< with which it was made
  double samples_per_second = 0;  ///< of all ranks
  bool pictures = true;           ///< the samples are pictures: [N, C, H, W]
  double input_wait = 0;          ///< this rank's share of the time, 0 to 1
  Logs metrics{};                 ///< since the epoch's begin; empty where nothing new is known

  /// What samples_per_second is called in records.
  [[nodiscard]] const char* rate_name() const {
    return pictures ? "images_per_second" : "samples_per_second";
  }
};

/// Gathers batches of training and says when a record is due: with the first update at or after
/// each log_freq-th batch, and with each epoch's last one. The time of an evaluation counts to
/// none.
class TrainWindow final {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TrainWindow(int64_t log_freq = 10, std::function<Clock::time_point()> now = Clock::now)
      : log_freq_(log_freq), now_(std::move(now)) {}

  void begin_epoch();
  void add(const Phase& phase);
  /// nullopt: no record is due.
  [[nodiscard]] std::optional<TrainFigures> add(const Step& step);

 private:
  int64_t log_freq_;
  std::function<Clock::time_point()> now_;
  Clock::time_point begun_{};
  double waited_ = 0;
  int64_t samples_ = 0;
  bool pictures_ = true;
  bool due_ = false;
  Logs metrics_;
};

/// The evaluation's part of an epoch's figures, without "eval_" in front; empty where there was
/// none.
[[nodiscard]] Logs evaluation_in(const Logs& epoch);

/// Lines of metrics.jsonl, as docs/reference/runs.md describes them.
[[nodiscard]] nlohmann::ordered_json train_record(const TrainFigures& figures);
[[nodiscard]] nlohmann::ordered_json eval_record(int64_t step,
                                                 int64_t epoch,
                                                 const Logs& evaluation);

}  // namespace argosy::train::detail
