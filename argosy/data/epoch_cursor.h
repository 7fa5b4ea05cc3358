#pragma once

#include <cstdint>
#include <optional>

namespace argosy::data {

/// A place in the stream of epochs: `position` batches of `epoch` have been consumed.
struct SamplerState {
  int64_t epoch = 0;
  int64_t position = 0;

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

/// Counts epochs for a sampler and for the loader that uses it.
///
/// Each begin() takes the next epoch unless set_epoch() chooses one. Not thread-safe: it belongs to
/// the thread that iterates.
class EpochCursor final {
 public:
  /// Returns the epoch that the next begin() takes.
  [[nodiscard]] int64_t epoch() const { return next_.epoch; }
  /// Returns what the next begin() returns.
  [[nodiscard]] const SamplerState& next() const { return next_; }

  /// Chooses the next epoch. A position restored by load() survives if it belongs to that epoch, so
  /// that the usual `for (e = start; …) { loader.set_epoch(e); … }` resumes in its middle.
  void set_epoch(int64_t epoch);

  /// Starts the next epoch, at its first batch unless load() set another one.
  SamplerState begin();

  /// Notes that `done` of `total` batches of the running epoch are consumed.
  void consumed(int64_t epoch, int64_t done, int64_t total);

  /// Returns the place at which a resumed run must start: in the epoch that runs or was left by a
  /// break, else at the next one.
  [[nodiscard]] SamplerState state() const { return current_.value_or(next_); }

  /// Restores a place. Errors: UsageError for a negative epoch or position.
  void load(const SamplerState& state);

 private:
  SamplerState next_;
  std::optional<SamplerState> current_;
};

}  // namespace argosy::data
