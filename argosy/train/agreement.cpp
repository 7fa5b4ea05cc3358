#include "argosy/train/agreement.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "argosy/fleet/fleet.h"
#include "argosy/os/signals.h"

namespace argosy::train::detail {

Agreement::Agreement(Requests& requests, const comm::Group& group)
    : requests_(requests), group_(group) {
  requests_ = {};
}

void Agreement::heed_signals() {
  signals_.emplace({SIGINT, SIGTERM, SIGUSR1});
}

void Agreement::add_batch(int64_t leaf, double loss, double count, int64_t samples) {
  own_.resize(std::max(own_.size(), static_cast<std::size_t>(leaf) + 1));
  Sums& sums = own_[static_cast<std::size_t>(leaf)];
  if (count > 0) {  // the mean of nothing is NaN and counts as nothing
    sums.loss += loss * count;
    sums.count += count;
  }
  sums.samples += static_cast<double>(samples);
}

void Agreement::at_update() {
  std::array<double, kQuestions> asked{};
  ask(asked);
  if (fleet::has_spares()) {  // which bring nothing to sums over virtual ranks
    sum_over_ranks(asked, group_);
  }
  std::vector<std::vector<double>> leaves;
  for (const Sums& sums : own_) {
    leaves.push_back({sums.loss, sums.count, sums.samples});
    leaves.back().resize(3 + kQuestions);
  }
  if (!leaves.empty()) {
    std::ranges::copy(asked, leaves.front().begin() + 3);
  }
  const std::vector<double> all = sum_over_virtual_ranks(leaves);
  loss_ = all[0] / all[1];
  samples_ = static_cast<int64_t>(all[2]);
  own_.clear();
  take(std::span(all).subspan<3, kQuestions>());
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
