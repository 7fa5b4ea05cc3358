#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "argosy/formats/criteo.h"

namespace argosy::recommend {

/// A place in the epochs of a log.
struct ClickPlace {
  int64_t epoch = 0;  ///< from 0
  int64_t lines = 0;  ///< the first ones of it, which the workers have taken together

  /// Returns it in words, for ps::ServedTraining::set_place().
  [[nodiscard]] std::string to_text() const;
  /// Reads what to_text() wrote; nullopt for other words.
  [[nodiscard]] static std::optional<ClickPlace> parse(const std::string& text);
};

struct ClickStreamOptions {
  std::string path{};
  int64_t batch_size = 512;  ///< lines
  int workers = 1;
  int worker = 0;     ///< whose batches these are
  int64_t limit = 0;  ///< the first lines of the log only; 0: all
  ClickPlace from{};  ///< where the first round begins
};

/// One worker's batches of a log of clicks. In each round every worker takes the next batch, in
/// their order. Lines at the end of the log that are no batch for each of them are left out, so
/// that all make as many steps; where the whole log is shorter, that is an error.
///
///     recommend::ClickStream stream({.path = "day_0.gz", .workers = 2, .worker = 1});
///     for (int epoch = 0; epoch < 3; ++epoch) {
///       for (formats::ClickBatch batch; stream.next(batch); batch.clear()) …
///     }
///
/// A training resumes with `from`: place() as it was, which depends neither on the number of
/// workers nor on their batches. Not thread-safe. Errors: those of CriteoReader; DataError for a
/// log without a whole round.
class ClickStream final {
 public:
  /// Errors: UsageError naming the option.
  explicit ClickStream(ClickStreamOptions options);

  /// Appends the next batch. False at the end of an epoch: the next call begins another one.
  [[nodiscard]] bool next(formats::ClickBatch& to);
  /// Passes over so many rounds, of as many epochs as it takes. Their lines are not looked into.
  /// It stays at the end of an epoch, so that next() tells it. Ends early where `stop` is asked.
  void skip(int64_t rounds, const std::stop_token& stop = {});
  /// Returns the place behind the last round.
  [[nodiscard]] ClickPlace place() const { return {.epoch = epochs_, .lines = lines_}; }
  /// Returns the number of epochs that have ended, and that of rounds passed in all.
  [[nodiscard]] int64_t epochs() const { return epochs_; }
  [[nodiscard]] int64_t rounds() const { return rounds_; }

 private:
  [[nodiscard]] int64_t lines_left() const;
  bool skip_lines(int64_t lines);
  bool round(formats::ClickBatch* to, const std::stop_token& stop = {});
  bool open(const std::stop_token& stop);
  void end_epoch();

  const ClickStreamOptions options_;
  std::optional<formats::CriteoReader> log_{};
  formats::ClickLines mine_{};
  int64_t epochs_ = 0;
  int64_t lines_ = 0;  ///< of this epoch, which rounds have taken
  int64_t rounds_ = 0;
  int64_t rounds_before_ = 0;  ///< this epoch
};

}  // namespace argosy::recommend
