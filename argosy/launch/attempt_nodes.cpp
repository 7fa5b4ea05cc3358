// What an attempt has to do with the launchers of other nodes.
#include <fmt/format.h>

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

RankEnd to_local(const RemoteEnd& end, const JobPlan& plan) {
  return {.rank = end.rank,
          .pid = end.pid,
          .exit = {.code = end.code, .signal = end.signal},
          .at = Clock::time_point(std::chrono::microseconds(end.at_us)),  // for differences only
          .ran = std::chrono::milliseconds(end.ran_ms),
          .host = plan.nodes.at(static_cast<size_t>(plan.node_of(end.rank))).host,
          .asked_to_stop = end.asked_to_stop};
}

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

RemoteEnd Attempt::to_remote(const RankEnd& end) const {
  const Rank& rank = ranks_[static_cast<size_t>(end.rank - ranks_.front().number())];
  RemoteEnd remote{.rank = end.rank,
                   .pid = end.pid,
                   .code = end.exit.code,
                   .signal = end.exit.signal,
                   .at_us = to_us(end.at),
                   .ran_ms = std::chrono::duration_cast<std::chrono::milliseconds>(end.ran).count(),
                   .asked_to_stop = end.asked_to_stop,
                   .log_path = rank.output().log_paths()};
  if (verdict_.first() && verdict_.first()->rank == end.rank) {
    remote.last_lines = rank.output().last_lines();  // those of its victims would only cost room
  }
  return remote;
}

void Attempt::tell(JobEvent::Kind kind, std::vector<RemoteEnd> ends, int signal) {
  session_.plane->tell({.kind = kind,
                        .node = session_.plane->node(),
                        .restart = session_.job.description.restart,
                        .signal = signal,
                        .ends = std::move(ends)});
}

void Attempt::tell_of_spawn_failure(const SpawnError& error) {
  spawn_failure_ = RemoteEnd{.rank = session_.job.description.first_rank,
                             .code = error.exit_code,
                             .at_us = now_us(),
                             .last_lines = {error.text.substr(0, error.text.find('\n'))}};
  tell(JobEvent::Kind::kFailed, {*spawn_failure_});
}

bool Attempt::waiting_for_others() const {
  return session_.plane && !(told_end_ && others_.over()) &&
         (!give_up_on_others_ || Clock::now() < *give_up_on_others_);
}

void Attempt::hear_other_nodes() {
  for (const JobEvent& event : session_.plane->events()) {
    const bool stopping = others_.stopping();
    others_.add(event);
    const bool elsewhere = event.node != session_.plane->node();
    if (!stopping && others_.stopping() && elsewhere && any_running()) {
      const JobPlan::Node& node = session_.met->plan.nodes.at(static_cast<size_t>(event.node));
      session_.say(fmt::format("[launch] node {} ({}) {}; stopping the ranks of this one\n",
                               event.node,
                               node.host,
                               describe(event.kind)));
    }
  }
  if (others_.stopping()) {
    policy_.stop(Clock::now());
  }
}

void Attempt::talk_to_other_nodes() {
  hear_other_nodes();
  if (!told_end_ && !left_) {
    told_end_ = true;
    std::vector<RemoteEnd> ends;
    for (Rank& rank : ranks_) {
      rank.output().forward_rest();
    }
    if (verdict_.first()) {
      ends.push_back(to_remote(*verdict_.first()));
    }
    for (const RankEnd& end : verdict_.others()) {
      ends.push_back(to_remote(end));
    }
    if (spawn_failure_) {
      ends.push_back(*spawn_failure_);
    }
    tell(JobEvent::Kind::kEnded, std::move(ends));
  }
  if (told_end_ && others_.stopping() && !give_up_on_others_) {
    give_up_on_others_ =
        Clock::now() + session_.options.shutdown_timeout + StopPolicy::kPatience + kForTheNetwork;
  }
}

/// The last words on a job of several nodes: every launcher comes to the same ones.
void Attempt::report_job(RestartPolicy& restarts, Outcome& outcome) {
  const JobPlan& plan = session_.met->plan;
  std::vector<RankEnd> ends;
  for (const RemoteEnd& end : others_.others()) {
    ends.push_back(to_local(end, plan));
  }
  std::vector<std::string> lost;
  for (const int node : others_.lost_nodes()) {
    const JobPlan::Node& gone = plan.nodes.at(static_cast<size_t>(node));
    lost.push_back(fmt::format("node {} ({}, {})", node, gone.host, gone.address));
  }
  const std::optional<RemoteEnd> first = others_.first_failure();
  const std::optional<int> signal =
      policy_.interrupted_by() ? policy_.interrupted_by() : others_.interrupted_by();
  outcome.interrupted = signal.has_value();
  // What ranks say of a node that is gone is a consequence; a rank that died of a signal is not.
  if (!lost.empty() && (!first || first->signal == 0)) {
    outcome.exit_code = 1;
    session_.say(render_lost(lost, "exit code 1"));
  } else if (first) {
    const RankEnd end = to_local(*first, plan);
    if (!outcome.interrupted && lost.empty()) {
      outcome.restart_after = restarts.next(end);
    }
    session_.say(render({.first = end,
                         .last_lines = first->last_lines,
                         .log_path = first->log_path,
                         .others = ends,
                         .what_now = restarts.describe(end, outcome.restart_after)}));
    outcome.exit_code = end.exit.shell_code();
  } else if (signal) {
    outcome.exit_code = 128 + *signal;
    session_.say(render_unexpected(*signal, ends));
  } else if (!others_.over()) {
    outcome.exit_code = 1;
    session_.say("[launch] the other nodes did not say in time how they ended\n");
  }
}

}  // namespace argosy::launch
