#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/formats/criteo.h"

namespace argosy::recommend {

struct ClickStreamOptions {
  std::string path{};
  int64_t batch_size = 512;  ///< lines
  int workers = 1;
  int worker = 0;     ///< whose batches these are
  int64_t limit = 0;  ///< the first lines of the log only; 0: all
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
/// A batch is a function of the number of rounds before it, so a training resumes by skip(). Not
/// thread-safe.
/// Errors: those of CriteoReader; DataError for a log without a whole round.
class ClickStream final {
 public:
  /// Errors: UsageError naming the option.
  explicit ClickStream(ClickStreamOptions options);

  /// Appends the next batch. False at the end of an epoch: the next call begins another one.
  [[nodiscard]] bool next(formats::ClickBatch& to);
  /// Passes over so many rounds, of as many epochs as it takes. Their lines are not looked into.
  /// It stays at the end of an epoch, so that next() tells it.
  void skip(int64_t rounds);
  /// Returns the number of epochs that have ended, and that of rounds passed in all.
  [[nodiscard]] int64_t epochs() const { return epochs_; }
  [[nodiscard]] int64_t rounds() const { return rounds_; }

 private:
  [[nodiscard]] int64_t lines_left() const;
  bool skip_lines(int64_t lines);
  bool round(formats::ClickBatch* to);
  void end_epoch();

  const ClickStreamOptions options_;
  std::optional<formats::CriteoReader> log_{};
  int64_t epochs_ = 0;
  int64_t rounds_ = 0;
  int64_t rounds_before_ = 0;  ///< this epoch
};

}  // namespace argosy::recommend
