#include "argosy/launch/job_talk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "argosy/launch/nodes/clock.h"
#include "argosy/launch/outcome.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The others need no longer than their ranks' grace, and then some for the network.
constexpr auto kForTheNetwork = 10s;
constexpr auto kForTheHurried = 3s;

const char* describe(JobEvent::Kind kind) {
  switch (kind) {
    case JobEvent::Kind::kFailed:
      return "has a rank that failed";
    case JobEvent::Kind::kInterrupted:
      return "was told to stop";
    default:
      return "is lost";
  }
}

}  // namespace

void JobTalk::tell(JobEvent event) {
  event.node = session_.journal->node();
  event.restart = session_.job.description.restart;
  session_.journal->tell(std::move(event));
}

bool JobTalk::waiting() const {
  const bool in_vain = give_up_at_ && Clock::now() >= *give_up_at_;
  return !(told_end_ && session_.state.over()) && !in_vain;
}

void JobTalk::hear(OurRanks ours, const std::function<void()>& on_failure) {
  for (JobEvent& event : session_.journal->events()) {
    if (event.kind == JobEvent::Kind::kLost && event.at_us == 0) {
      const KeepAlive& keep_alive = session_.met->plan.keep_alive;
      const auto silent = keep_alive.limit() + keep_alive.interval;
      event.at_us =
          now_us(session_.met->clock_offset_us) - std::chrono::microseconds(silent).count();
    }
    const bool stopping = session_.state.stopping();
    session_.state.add(event);
    if (event.node != session_.journal->node()) {
      if (event.kind == JobEvent::Kind::kFailed && !policy_.stopping() && !event.ends.empty() &&
          !died_by_signal(event.ends.front())) {
        on_failure();
      } else if (event.kind == JobEvent::Kind::kInterrupted) {
        event.signal == SIGKILL ? policy_.hurry(Clock::now())
                                : policy_.interrupt_elsewhere(event.signal, Clock::now());
      }
      if (!stopping && session_.state.stopping() && ours == OurRanks::kRun) {
        const JobPlan::Node& node = session_.met->plan.nodes.at(static_cast<size_t>(event.node));
        session_.say_for_all(
            fmt::format("[launch] node {} ({}) {}; stopping the ranks of this node\n",
                        event.node,
                        node.host,
                        describe(event.kind)));
      }
    } else if (event.kind == JobEvent::Kind::kLost) {
      session_.say(
          "[launch] the other nodes gave this one up as lost: its launcher stood still, or its "
          "machine or network did not answer\n");
    }
  }
  if (session_.state.stopping()) {
    policy_.stop(Clock::now(), StopPolicy::kForOthersToFail);
  }
}

void JobTalk::tell_end(std::vector<RankEnd> ends, Remains remains) {
  told_end_ = true;
  ended_at_ = Clock::now();
  tell({.kind = JobEvent::Kind::kEnded,
        .ends = std::move(ends),
        .left_behind = remains == Remains::kProcesses});
}

void JobTalk::decide(RestartPolicy& restarts) {
  const std::optional<RankEnd> first = session_.state.first_failure();
  if (session_.journal->node() != 0 || !session_.state.undecided() || !first || decided_) {
    return;
  }
  decided_ = true;
  const auto wait = session_.state.may_restart() ? restarts.next(*first) : std::nullopt;
  const char* const why = session_.state.something_left() ? "; processes were left behind" : "";
  tell({.kind = JobEvent::Kind::kDecided,
        .wait_ms = wait ? wait->count() : -1,
        .text = restarts.describe(*first, wait) + why});
}

void JobTalk::wait_for_others() {
  if (!told_end_) {
    return;
  }
  if (!told_waiting_ && Clock::now() >= ended_at_ + kWaitingNotice) {
    told_waiting_ = true;
    session_.say(
        fmt::format("[launch] the ranks of this node have ended; waiting for {}\n",
                    fmt::join(names_of(session_.state.awaited(), session_.met->plan), ", ")));
  }
  if (session_.state.stopping() && !give_up_at_) {
    give_up_at_ = Clock::now() +
                  std::chrono::milliseconds(session_.met ? session_.met->plan.grace_ms : 0) +
                  StopPolicy::kPatience + kForTheNetwork;
  }
  if (policy_.hurried() && !hurried_) {
    hurried_ = true;
    const Clock::time_point soon = Clock::now() + kForTheHurried;
    give_up_at_ = std::min(give_up_at_.value_or(soon), soon);
  }
}

std::optional<Clock::time_point> JobTalk::wake() const {
  std::optional<Clock::time_point> wake = give_up_at_;
  if (told_end_ && !told_waiting_) {
    wake = std::min(wake.value_or(Clock::time_point::max()), ended_at_ + kWaitingNotice);
  }
  return wake;
}

}  // namespace argosy::launch
