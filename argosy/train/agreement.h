#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/os/signal_flag.h"
#include "argosy/train/core.h"
#include "argosy/train/options.h"
#include "argosy/train/training_state.h"

namespace argosy::train::detail {

/// The decisions that the ranks of one fit() make together: the update's loss, whether to stop or
/// save, and whether a signal came. Each update costs one small sum, right after backward, where
/// the ranks have met anyway.
class Agreement final {
 public:
  /// Clears the requests of an earlier fit(). Refers to both.
  Agreement(Requests& requests, const comm::Group& group);

  /// From here on a signal lets the ranks save and leave.
  void heed_signals();
  [[nodiscard]] bool heeds_signals() const { return signals_.has_value(); }
  /// The last signal that this rank received, or 0.
  [[nodiscard]] int signal() const { return signals_.has_value() ? signals_->received() : 0; }

  /// Adds a batch of this rank's virtual rank `leaf` to the update.
  void add_batch(int64_t leaf, double loss, double count, int64_t samples);
  /// Sums the update's batches and everybody's requests. Collective.
  void at_update();
  /// Sums the requests after an epoch and its evaluation. Collective.
  void at_epoch_end();
  /// A signal came to some rank: all save and leave. Collective.
  void leave_for_signal();
  /// The training is done: it needs no other reason.
  void finish() { ended_ = true; }
  /// True once after a request for a checkpoint.
  [[nodiscard]] bool take_checkpoint_request();

  [[nodiscard]] double loss() const { return loss_; }  ///< of the last update, over all ranks
  [[nodiscard]] int64_t samples() const { return samples_; }  ///< of the last update
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool preempted() const { return ended_as_ == Ended::kPreempted; }
  [[nodiscard]] bool stops_after_epoch() const { return stop_after_epoch_; }

  /// Puts what a checkpoint keeps of it into `place`, or takes it from there.
  void put(Place& place, bool epoch_end) const;
  void load(const Place& place);
  /// Puts the end and its reason into `history`.
  void put(History& history) const;

 private:
  static constexpr std::size_t kQuestions = 4;
  void ask(std::span<double, kQuestions> sums) const;
  void take(std::span<const double, kQuestions> sums);
  void stop();

  Requests& requests_;
  const comm::Group& group_;
  std::optional<os::SignalFlag> signals_;
  /// Of a virtual rank's batches since the last update.
  struct Sums {
    double loss = 0;  // Σ mean · count
    double count = 0;
    double samples = 0;
  };
  std::vector<Sums> own_{};  // of each virtual rank of this rank
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  int64_t samples_ = 0;
  bool ended_ = false;
  bool stop_after_epoch_ = false;
  bool checkpoint_requested_ = false;
  std::string stop_reason_{};
  Ended ended_as_ = Ended::kFinished;
  std::string reason_{};
  bool interrupted_ = false;
};

}  // namespace argosy::train::detail
