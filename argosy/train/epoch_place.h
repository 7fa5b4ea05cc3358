#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "argosy/train/training_state.h"

namespace argosy::train::detail {

/// Counts epochs, batches and updates of one fit(), and what a checkpoint keeps of them.
class EpochPlace final {
 public:
  /// `begun_step` is the number of updates that the model had before this training.
  explicit EpochPlace(int64_t begun_step) : begun_step_(begun_step) {}

  [[nodiscard]] int64_t epoch() const { return epoch_; }
  [[nodiscard]] int64_t batch() const { return batch_; }  ///< in the epoch's last leg, from 0
  [[nodiscard]] int64_t begun_step() const { return begun_step_; }
  /// True if all batches of the epoch were done before the resume.
  [[nodiscard]] bool batches_done() const { return batches_done_; }

  /// Begins the epoch, on `legs`. Returns false if a resumed one continues amid its batches.
  [[nodiscard]] bool begin_epoch(std::vector<Leg> legs);
  void batch_done() { ++batch_; }
  /// Begins the update's batches again, for another virtual rank.
  void leaf_done() { batch_ = update_begun_; }
  void update_done() { update_begun_ = batch_; }
  void epoch_done() { ++epoch_; }

  /// Puts the position in the current epoch into `place` of a checkpoint.
  void put(Place& place, std::optional<int64_t> batches) const;
  /// Puts the start of the next epoch, which is dealt as `legs`, into `place`.
  void put_next_epoch(Place& place, std::vector<Leg> legs) const;
  /// Resumes at `place`. `new_legs` starts a new leg of the epoch; empty continues the last one.
  void load(const Place& place, const std::vector<Leg>& new_legs);

 private:
  int64_t begun_step_;
  int64_t epoch_ = 0;
  int64_t batch_ = 0;         // of each virtual rank
  int64_t update_begun_ = 0;  // the first batch of the current update
  std::vector<Leg> legs_;     // of the epoch, where fit() deals; the last one is running
  bool in_epoch_ = false;     // the next epoch continues from batch_
  bool batches_done_ = false;
};

}  // namespace argosy::train::detail
