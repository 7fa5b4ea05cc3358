#include "argosy/train/agreement.h"

#include <array>
#include <csignal>
#include <utility>

#include "argosy/os/signals.h"

namespace argosy::train::detail {

Agreement::Agreement(Requests& requests, const comm::Group& group)
    : requests_(requests), group_(group) {
  requests_ = {};
}

void Agreement::heed_signals() {
  signals_.emplace({SIGINT, SIGTERM, SIGUSR1});
}

void Agreement::add_batch(double loss, double count, int64_t samples) {
  if (count > 0) {  // the mean of nothing is NaN and counts as nothing
    own_loss_ += loss * count;
    own_count_ += count;
  }
  own_samples_ += samples;
}

void Agreement::at_update() {
  std::array<double, 3 + kQuestions> sums{own_loss_, own_count_, static_cast<double>(own_samples_)};
  ask(std::span(sums).subspan<3>());
  sum_over_ranks(sums, group_);
  loss_ = sums[0] / sums[1];
  samples_ = static_cast<int64_t>(sums[2]);
  own_loss_ = own_count_ = 0;
  own_samples_ = 0;
  take(std::span(sums).subspan<3>());
}

void Agreement::at_epoch_end() {
  std::array<double, kQuestions> sums{};
  ask(sums);
  sum_over_ranks(sums, group_);
  take(sums);
  if (stop_after_epoch_ && !preempted()) {
    stop();
  }
}

/// What this rank has been asked for: to stop now, to stop after the epoch, to save, to leave.
void Agreement::ask(std::span<double, kQuestions> sums) const {
  const auto number = [](bool asked) { return asked ? 1.0 : 0.0; };
  sums[0] = number(requests_.stop_now);
  sums[1] = number(requests_.stop_after_epoch);
  sums[2] = number(requests_.checkpoint);
  sums[3] = number(signal() != 0);
}

/// What all ranks have been asked for.
void Agreement::take(std::span<const double, kQuestions> sums) {
  const bool stop_now = sums[0] > 0;
  const bool stop_after_epoch = sums[1] > 0;
  stop_after_epoch_ = stop_after_epoch_ || stop_after_epoch;
  if (stop_now || stop_after_epoch) {
    stop_reason_ = requests_.reason.empty() ? "another rank asked for it" : requests_.reason;
  }
  if (stop_now) {
    stop();
  } else if (sums[3] > 0) {
    leave_for_signal();
  }
  checkpoint_requested_ = sums[2] > 0 || preempted();
  requests_.checkpoint = false;
}

void Agreement::stop() {
  ended_ = true;
  ended_as_ = Ended::kStopped;
  reason_ = stop_reason_;
}

void Agreement::leave_for_signal() {
  ended_ = true;
  ended_as_ = Ended::kPreempted;
  checkpoint_requested_ = true;
  std::array<double, 1> interrupted{signal() == SIGINT ? 1.0 : 0.0};
  sum_over_ranks(interrupted, group_);
  interrupted_ = interrupted[0] == static_cast<double>(group_.size());
  reason_ = signal() != 0 ? os::signal_name(signal()) + " came" : "a signal came to another rank";
}

bool Agreement::take_checkpoint_request() {
  return std::exchange(checkpoint_requested_, false);
}

void Agreement::put(Place& place, bool epoch_end) const {
  place.loss = loss_;
  place.samples = samples_;
  place.stop_after_epoch = stop_after_epoch_;
  place.stopped = (ended_as_ == Ended::kStopped && ended_) ||
                  (epoch_end && stop_after_epoch_);  // a signal came first, perhaps
  place.reason = stop_reason_;
}

void Agreement::load(const Place& place) {
  loss_ = place.loss;
  samples_ = place.samples;
  stop_after_epoch_ = place.stop_after_epoch;
  stop_reason_ = place.reason;
  if (place.stopped) {
    stop();
  }
}

void Agreement::put(History& history) const {
  history.ended = ended_as_;
  history.reason = reason_;
  history.interrupted = interrupted_;
}

}  // namespace argosy::train::detail
