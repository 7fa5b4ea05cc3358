#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/fleet/updates.h"
#include "argosy/train/agreement.h"
#include "argosy/train/announcer.h"
#include "argosy/train/batch_pass.h"
#include "argosy/train/callbacks/monitor.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/core.h"
#include "argosy/train/dealt_feed.h"
#include "argosy/train/epoch_place.h"
#include "argosy/train/folder_lock.h"
#include "argosy/train/options.h"

namespace argosy::train::detail {

/// One call of fit(): epochs of batches, updates, evaluations and save points.
class FitLoop final {
 public:
  FitLoop(Core& core,
          Model& model,
          Feed& train,
          Feed* eval,
          const FitOptions& options,
          FitStart& start);

  History run();
  /// The last signal that came, or 0.
  [[nodiscard]] int signal() const { return agreement_.signal(); }

 private:
  using Clock = std::chrono::steady_clock;

  History train_all();
  void forget_update();
  void resume();
  void continue_from(const Share& share, const std::string& path);
  void restore_epoch_sums(const Place& place, const Share& share);
  void run_epoch();
  void run_batches();
  void begin_pass();
  void run_batch(const Tensors& batch);
  double run_update();
  void finish_epoch();
  /// Adds the evaluation's figures. Returns false if a signal came to some rank, and the evaluation
  /// was left.
  [[nodiscard]] bool evaluate_now(Logs& logs);
  void move_schedule(const Logs& logs);
  void offer_save_point(bool epoch_end, const Logs& logs);
  void end_at_num_iters();
  /// Runs work that waits for the other ranks, and reports its time as PhaseKind::kAgree if there
  /// are any.
  void together_with_ranks(const std::function<void()>& work);

  /// Returns the figure that a schedule follows.
  [[nodiscard]] Monitor schedules_figure() const;
  [[nodiscard]] bool done() const {
    return agreement_.ended() || place_.epoch() >= options_.epochs;
  }
  [[nodiscard]] Place place_now(bool epoch_end) const;
  [[nodiscard]] Training training() const;
  [[nodiscard]] std::vector<std::string> class_names() const;
  [[nodiscard]] Epoch epoch_now(const Logs& logs) const;
  [[nodiscard]] Step step_now(const Logs& logs) const;

  Core& core_;
  Model& model_;
  Feed* eval_;
  const FitOptions& options_;
  FitStart& start_;
  Announcer announcer_;
  Agreement agreement_;
  DealtFeed feed_;
  BatchPass pass_;
  EpochPlace place_;
  History history_;
  bool resumed_ = false;
  std::string begun_from_;  // resume_from, of an earlier start too

  uint64_t seed_ = 0;                                // of the passes' random numbers
  std::optional<fleet::detail::UpdatePlace> turns_;  // of the epoch, or of what is left of it
  std::optional<int64_t> batches_;                   // of each virtual rank, likewise
  bool shows_ = false;                               // this update's figures are to be shown
  Clock::time_point epoch_begun_{};
  bool updates_ = true;  // the current pass completes an update
};

}  // namespace argosy::train::detail
