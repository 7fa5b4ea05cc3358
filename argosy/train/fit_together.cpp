// What the ranks decide together while they train.
#include <array>
#include <csignal>

#include "argosy/engine/random_state.h"
#include "argosy/os/signals.h"
#include "argosy/train/fit_loop.h"

namespace argosy::train::detail {

void FitLoop::agree() {
  std::array<double, 3 + kQuestions> sums{own_loss_, own_count_, static_cast<double>(own_samples_)};
  ask(std::span(sums).subspan<3>());
  sum_over_ranks(sums, core_.group);
  loss_ = sums[0] / sums[1];
  samples_ = static_cast<int64_t>(sums[2]);
  own_loss_ = own_count_ = 0;
  own_samples_ = 0;
  take(std::span(sums).subspan<3>());
}

void FitLoop::agree_at_epoch_end() {
  std::array<double, kQuestions> sums{};
  ask(sums);
  sum_over_ranks(sums, core_.group);
  take(sums);
  if (stop_after_epoch_ && !preempted_) {
    stop();
  }
}

void FitLoop::ask(std::span<double, kQuestions> sums) const {
  const auto number = [](bool asked) { return asked ? 1.0 : 0.0; };
  sums[0] = number(core_.requests.stop_now);
  sums[1] = number(core_.requests.stop_after_epoch);
  sums[2] = number(core_.requests.checkpoint);
  sums[3] = number(signals_.has_value() && signals_->received() != 0);
}

void FitLoop::take(std::span<const double, kQuestions> sums) {
  const bool stop_now = sums[0] > 0;
  const bool stop_after_epoch = sums[1] > 0;
  stop_after_epoch_ = stop_after_epoch_ || stop_after_epoch;
  if (stop_now || stop_after_epoch) {
    stop_reason_ =
        core_.requests.reason.empty() ? "another rank asked for it" : core_.requests.reason;
  }
  if (stop_now) {
    stop();
  } else if (sums[3] > 0) {
    leave_for_signal();
  }
  checkpoint_requested_ = sums[2] > 0 || preempted_;
  core_.requests.checkpoint = false;
}

void FitLoop::stop() {
  ended_ = true;
  history_.ended = Ended::kStopped;
  history_.reason = stop_reason_;
}

void FitLoop::leave_for_signal() {
  preempted_ = true;
  ended_ = true;
  checkpoint_requested_ = true;
  history_.ended = Ended::kPreempted;
  std::array<double, 1> interrupted{signal() == SIGINT ? 1.0 : 0.0};
  sum_over_ranks(interrupted, core_.group);
  history_.interrupted = interrupted[0] == static_cast<double>(core_.group.size());
  history_.reason = signals_->received() != 0 ? os::signal_name(signals_->received()) + " came"
                                              : "a signal came to another rank";
}

bool FitLoop::evaluate_now(Logs& logs) {
  std::function<bool()> asked;
  if (signals_.has_value() && batches_.has_value()) {  // else there is no place to go on from
    asked = [this] { return signal() != 0; };
  }
  const std::vector<metrics::AnyMetric> metrics = core_.metrics;
  const engine::StateDict random = engine::random_state(*core_.network.module);
  const std::optional<Logs> figures = evaluate_unless(
      core_,
      model_,
      *eval_,
      {.log_freq = options_.log_freq, .verbose = options_.verbose, .callbacks = watching_},
      asked);
  if (figures.has_value()) {
    logs.add(*figures, "eval_");
    return true;
  }
  core_.metrics = metrics;  // all is as it was when the epoch's batches were done
  engine::load_random_state(random);
  leave_for_signal();
  return false;
}

}  // namespace argosy::train::detail
