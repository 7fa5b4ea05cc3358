#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/train/feed.h"
#include "argosy/train/options.h"
#include "argosy/train/training_state.h"

namespace argosy::train::detail {

/// The training batches of these ranks: those of the caller's feed, or other ones after a resume
/// with another number of virtual ranks, which deals the rest of an epoch anew.
class DealtFeed final {
 public:
  /// Refers to all three.
  DealtFeed(Feed& feed, const FitOptions& options, const comm::Group& group);

  /// The batches of the epoch that is running.
  [[nodiscard]] Feed& now() const { return rest_ != nullptr ? *rest_ : *whole_; }
  /// The batches of whole epochs.
  [[nodiscard]] Feed& whole() const { return *whole_; }
  [[nodiscard]] int64_t batch_size() const { return batch_size_; }  ///< per virtual rank
  /// Whose turn the batches of now() are.
  /// Errors: UsageError for a loader whose updates have another number of batches.
  [[nodiscard]] data::BatchTurns turns() const;
  /// This process's batches in the epoch, or a number beyond all for a stream of unknown length.
  [[nodiscard]] int64_t batches_of_process() const;
  /// The number of legs of the running epoch before this one.
  [[nodiscard]] uint64_t earlier_legs() const { return earlier_legs_; }
  /// The leg of an epoch that begins here; empty with a loader of the caller's.
  [[nodiscard]] std::vector<Leg> new_legs() const;
  void end_epoch() {
    rest_.reset();
    earlier_legs_ = 0;
  }

  /// Resumes at `place` of `snapshot`. Returns true if these ranks continue the
  /// last leg of the place, false if they begin one of their own.
  /// Errors: UsageError for a place that cannot be dealt to these ranks.
  bool resume(const Place& place, const checkpoint::Snapshot& snapshot);

 private:
  [[nodiscard]] int64_t batch_size_after(const Place& place) const;
  [[nodiscard]] bool is_dealt_as(const Place& place) const;
  void resume_between_epochs();
  void deal(const Place& place);

  Feed* whole_;
  const FitOptions& options_;
  const comm::Group& group_;
  int64_t batch_size_;
  std::unique_ptr<Feed> other_batches_;  // in the place of the caller's feed
  std::unique_ptr<Feed> rest_;           // of an epoch that other ranks have begun
  uint64_t earlier_legs_ = 0;
};

}  // namespace argosy::train::detail
