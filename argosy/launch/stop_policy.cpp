#include "argosy/launch/stop_policy.h"

#include <signal.h>

#include <utility>

namespace argosy::launch {

void StopPolicy::ask(int signal, Time now) {
  stage_ = Stage::kAsked;
  to_send_ = signal;
  deadline_ = now + grace_;
}

void StopPolicy::stop(Time now, std::chrono::milliseconds delay) {
  if (delay > std::chrono::milliseconds(0) && stage_ == Stage::kRunning) {
    stage_ = Stage::kDelayed;
    deadline_ = now + delay;
  } else if (delay == std::chrono::milliseconds(0) &&
             (stage_ == Stage::kRunning || stage_ == Stage::kDelayed)) {
    ask(SIGTERM, now);
  }
}

void StopPolicy::interrupt_elsewhere(int signal, Time now) {
  const bool first = !interrupted_by_;
  interrupted_by_ = interrupted_by_.value_or(signal);
  if (stage_ == Stage::kRunning || stage_ == Stage::kDelayed) {
    ask(signal, now);
  } else if (stage_ == Stage::kAsked && first) {
    to_send_ = signal;  // the deadline stays: a failure had set it
  }
}

void StopPolicy::interrupt(int signal, Time now) {
  const bool again = asked_here_at_ && signal != SIGHUP && now >= *asked_here_at_ + kOneRequest;
  asked_here_at_ = asked_here_at_.value_or(now);
  interrupt_elsewhere(signal, now);
  if (again) {
    hurry(now);
  }
}

void StopPolicy::hurry(Time now) {
  if (stage_ == Stage::kAsked) {
    deadline_ = now;
  }
  hurried_ = hurried_ || stage_ == Stage::kAsked || stage_ == Stage::kKilled;
}

std::optional<int> StopPolicy::due(Time now) {
  if (stage_ == Stage::kDelayed && now >= deadline_) {
    ask(SIGTERM, now);
  } else if (stage_ == Stage::kAsked && now >= deadline_) {
    stage_ = Stage::kKilled;
    deadline_ = now + kPatience;
    to_send_ = SIGKILL;
  }
  return std::exchange(to_send_, std::nullopt);
}

std::optional<StopPolicy::Time> StopPolicy::wake() const {
  return stage_ == Stage::kRunning ? std::nullopt : std::optional(deadline_);
}

}  // namespace argosy::launch
