#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/checkpoint/snapshot.h"
#include "argosy/os/signal_flag.h"
#include "argosy/train/callbacks/monitor.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/core.h"
#include "argosy/train/feed.h"
#include "argosy/train/folder_lock.h"
#include "argosy/train/options.h"
#include "argosy/train/phases.h"
#include "argosy/train/training_state.h"

namespace argosy::train::detail {

/// One call of fit(): the places in the epoch and in the update, and what has been summed up.
class FitLoop final {
 public:
  FitLoop(Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options);

  History run();
  /// The last one that came, 0: none.
  [[nodiscard]] int signal() const { return signals_.has_value() ? signals_->received() : 0; }

 private:
  History train_all();
  void tell_exception(const std::string& what);
  /// Does what waits for the other ranks, and tells its time as PhaseKind::kAgree where there are
  /// any.
  void together_with_ranks(const std::function<void()>& work);
  using Clock = std::chrono::steady_clock;

  template <typename About>
  void all(void (Callback::*hook)(const About&), const About& about) {
    for (const AnyCallback& callback : callbacks_) {
      ((*callback).*hook)(about);
    }
  }
  [[nodiscard]] Training training() const;
  [[nodiscard]] std::vector<std::string> class_names() const;
  [[nodiscard]] Epoch epoch_now(const Logs& logs) const;
  [[nodiscard]] bool done() const { return ended_ || epoch_ >= options_.epochs; }
  [[nodiscard]] Step step_now(const Logs& logs) const;

  // The loop: fit_loop.cpp.
  void forget_update();
  void run_epoch();
  void run_batches();
  void finish_epoch();
  void run_batch(const Tensors& batch);
  void forward_backward(const Tensors& batch, int64_t together);
  /// What a schedule of a figure looks at.
  [[nodiscard]] Monitor schedules_figure() const;
  void move_schedule(const Logs& logs);
  [[nodiscard]] int64_t batches_of_update() const;

  // What the ranks decide together: fit_together.cpp.
  /// Adds the evaluation's figures. False: a signal came to some rank, and it was left.
  [[nodiscard]] bool evaluate_now(Logs& logs);
  /// The ranks put together the update's loss and what each has been asked for: one small sum,
  /// after backward, where they have met anyhow.
  void agree();
  void agree_at_epoch_end();
  /// What this rank has been asked for: to stop, now or after the epoch, for a checkpoint, by a
  /// signal.
  static constexpr std::size_t kQuestions = 4;
  void ask(std::span<double, kQuestions> sums) const;
  /// What all ranks have been asked for.
  void take(std::span<const double, kQuestions> sums);

  /// For stop_reason_.
  void stop();
  /// After a checkpoint.
  void leave_for_signal();

  // Where a later run can go on, and going on from there: fit_resume.cpp.
  void add_checkpoints();
  [[nodiscard]] bool keeps_checkpoints() const;
  void offer_save_point(bool epoch_end, const Logs& logs);
  [[nodiscard]] Place place_now(bool epoch_end) const;
  void resume();
  void go_on(const Share& share, const std::string& path);
  void go_on_summing(const Place& place, const Share& share);
  void go_on_in_epoch(const Place& place, const checkpoint::Snapshot& snapshot);
  [[nodiscard]] bool is_dealt_as(const Place& place) const;
  [[nodiscard]] int64_t batch_size_after(const Place& place) const;
  void deal_next_epochs();
  void deal_to_these_ranks(const Place& place);
  [[nodiscard]] Feed& feed() const { return rest_ != nullptr ? *rest_ : *train_; }

  Core& core_;
  Model& model_;
  Feed* train_;
  Feed* eval_;
  const FitOptions& options_;
  std::vector<AnyCallback> callbacks_;
  std::vector<AnyCallback> watching_;  // of them, those that evaluations have too
  Phases phases_{callbacks_, core_.steps};
  std::optional<int64_t> batches_;  // of the epoch, or of what is left of it
  History history_;
  std::optional<os::SignalFlag> signals_;

  int64_t begun_step_ = 0;  // updates that the model had when this training began
  int64_t epoch_ = 0;
  int64_t batch_ = 0;         // in the epoch, or in what is left of it
  int64_t update_begun_ = 0;  // the first batch of the update at hand
  Clock::time_point epoch_begun_{};
  LossMean epoch_loss_;

  int64_t batch_size_ = 1;  // per rank
  std::vector<Leg> legs_;   // of the epoch, where fit() deals; the last one is going on
  std::unique_ptr<Feed> other_batches_;  // in the place of the caller's feed
  std::unique_ptr<Feed> rest_;           // of an epoch that other ranks have begun
  std::optional<FolderLock> lock_;
  bool resumed_ = false;
  std::string begun_from_;   // resume_from, of an earlier start too
  bool in_epoch_ = false;    // the next epoch goes on from batch_
  bool epoch_done_ = false;  // and all its batches were done, on whatever ranks

  Tensors inputs_;       // of the batch at hand
  bool updates_ = true;  // whether the batch at hand completes an update
  double own_loss_ = 0;  // of this rank's batches since the last update: Σ mean · count
  double own_count_ = 0;
  int64_t own_samples_ = 0;
  double loss_ = std::numeric_limits<double>::quiet_NaN();  // of the last update, over all ranks
  int64_t samples_ = 0;
  bool ended_ = false;
  bool stop_after_epoch_ = false;
  std::string stop_reason_{};
  bool checkpoint_requested_ = false;
  bool preempted_ = false;
};

}  // namespace argosy::train::detail
