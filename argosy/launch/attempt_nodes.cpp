// What an attempt has to do with the launchers of other nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "argosy/launch/attempt.h"
#include "argosy/launch/nodes/clock.h"
#include "argosy/launch/report.h"

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
      return "is gone";
  }
}

}  // namespace

/// `end` with what the rank said, as far as it was read.
RankEnd Attempt::with_its_words(RankEnd end) const {
  const Rank& rank = rank_of(end);
  end.log_path = rank.output().log_paths();
  end.last_words = rank.output().last_words(session_.output.err(), rank.ended_at());
  if (failed_by_itself(end)) {
    end.program = shown_program();
    end.last_lines = rank.output().last_lines();
    end.error = error_of(end);
  }
  return end;
}

/// `event`: what happens on this node, in this start.
void Attempt::tell(JobEvent event) {
  event.node = session_.journal->node();
  event.restart = session_.job.description.restart;
  session_.journal->tell(std::move(event));
}

void Attempt::tell_of_spawn_failure(const SpawnError& error) {
  const int started = static_cast<int>(ranks_.size());  // the one after them did not
  const int node = session_.journal->node();
  spawn_failure_ =
      RankEnd{.rank = session_.job.description.first_rank + started,
              .node = node,
              .exit = {.code = error.exit_code},
              .at_us = job_time_us(Clock::now()),
              .host = session_.met ? session_.met->plan.nodes.at(static_cast<size_t>(node)).host
                                   : std::string(),
              .last_lines = {error.text.substr(0, error.text.find('\n'))},
              .program = shown_program()};
  tell({.kind = JobEvent::Kind::kFailed, .ends = {*spawn_failure_}});
}

bool Attempt::waiting_for_others() const {
  const bool in_vain = give_up_on_others_ && Clock::now() >= *give_up_on_others_;
  return !(told_end_ && session_.state.over()) && !in_vain;
}

void Attempt::hear() {
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
      hear(event);
      if (!stopping && session_.state.stopping() && any_running()) {
        const JobPlan::Node& node = session_.met->plan.nodes.at(static_cast<size_t>(event.node));
        session_.say_for_all(
            fmt::format("[launch] node {} ({}) {}; stopping the ranks of this one\n",
                        event.node,
                        node.host,
                        describe(event.kind)));
      }
    } else if (event.kind == JobEvent::Kind::kLost) {
      session_.say(
          "[launch] the other nodes took this one for lost: its launcher stood still, or its "
          "machine or network did not answer\n");
    }
  }
  if (session_.state.stopping()) {
    policy_.stop(Clock::now(), StopPolicy::kForOthersToFail);
  }
}

/// What another node tells.
void Attempt::hear(const JobEvent& event) {
  if (event.kind == JobEvent::Kind::kFailed && !policy_.stopping() && !event.ends.empty() &&
      !died_by_signal(event.ends.front())) {
    judge(hangs_.end_the_stopped());
  } else if (event.kind == JobEvent::Kind::kInterrupted) {
    event.signal == SIGKILL ? policy_.hurry(Clock::now())
                            : policy_.interrupt_elsewhere(event.signal, Clock::now());
  }
}

/// Tells all launchers how our ranks have ended.
void Attempt::tell_end() {
  told_end_ = true;
  ended_at_ = Clock::now();
  JobEvent event{.kind = JobEvent::Kind::kEnded, .left_behind = leftovers_.any()};
  for (Rank& rank : ranks_) {
    rank.output().forward_rest();
  }
  for (const RankEnd& end : ends_) {
    event.ends.push_back(with_its_words(end));
  }
  if (spawn_failure_) {
    event.ends.push_back(*spawn_failure_);
  }
  tell(std::move(event));
}

/// Node 0 writes down what comes of a start in which a rank failed.
void Attempt::decide(RestartPolicy& restarts) {
  const std::optional<RankEnd> first = session_.state.first_failure();
  if (session_.journal->node() != 0 || !session_.state.undecided() || !first || decided_) {
    return;
  }
  decided_ = true;
  const auto wait = session_.state.may_restart() ? restarts.next(*first) : std::nullopt;
  const char* const why = session_.state.something_left() ? kNotOverThem : "";
  tell({.kind = JobEvent::Kind::kDecided,
        .wait_ms = wait ? wait->count() : -1,
        .text = restarts.describe(*first, wait) + why});
}

void Attempt::say_who_is_awaited() {
  if (told_end_ && !told_waiting_ && Clock::now() >= ended_at_ + kWaitingNotice) {
    told_waiting_ = true;
    session_.say(
        fmt::format("[launch] the ranks of this node have ended; waiting for {}\n",
                    fmt::join(names_of(session_.state.awaited(), session_.met->plan), ", ")));
  }
}

/// Hears what all launchers tell, this one included, and tells what is due.
void Attempt::talk(RestartPolicy& restarts) {
  hear();
  if (!told_end_ && (!leftovers_.any() || policy_.given_up(Clock::now()))) {
    tell_end();
    hear();
  }
  decide(restarts);
  hear();
  say_who_is_awaited();
  if (told_end_ && session_.state.stopping() && !give_up_on_others_) {
    give_up_on_others_ = Clock::now() +
                         std::chrono::milliseconds(session_.met ? session_.met->plan.grace_ms : 0) +
                         StopPolicy::kPatience + kForTheNetwork;
  }
  if (told_end_ && policy_.hurried() && !hurried_) {
    hurried_ = true;
    const Clock::time_point soon = Clock::now() + kForTheHurried;
    give_up_on_others_ = std::min(give_up_on_others_.value_or(soon), soon);
  }
}

}  // namespace argosy::launch
