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

void StopPolicy::interrupt(int signal, Time now) {
  const bool first = !interrupted_by_;
  if (first) {
    interrupted_by_ = signal;
    interrupted_at_ = now;
  }
  const bool again = !first && signal != SIGHUP && now >= interrupted_at_ + kOneRequest;
  if (stage_ == Stage::kRunning || stage_ == Stage::kDelayed) {
    ask(signal, now);
  } else if (stage_ == Stage::kAsked && first) {
    to_send_ = signal;  // the deadline stays: a failure had set it
  } else if (stage_ == Stage::kAsked && again) {
    deadline_ = now;
    hurried_ = true;
  }
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
