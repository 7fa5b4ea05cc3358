// What an attempt has to do with the launchers of other nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/base/exit_codes.h"
#include "argosy/launch/attempt.h"
#include "argosy/launch/nodes/clock.h"
#include "argosy/launch/report.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The others need no longer than their ranks' grace, and then some for the network.
constexpr auto kAttemptNodesForTheNetwork = 10s;
constexpr auto kForTheHurried = 3s;
/// Who loses a peer may fail before the launchers know that its node is lost: in microseconds.
constexpr int64_t kCascade = 500'000;

/// All launchers are told so much of what a rank said of its end.
constexpr size_t kLongestError = 4096;

RankEnd to_local(const RemoteEnd& end, const JobPlan& plan) {
  return {
      .rank = end.rank,
      .pid = end.pid,
      .exit = {.code = end.code, .signal = end.signal},
      .at = Clock::time_point(std::chrono::microseconds(end.at_us)),  // for differences only
      .at_us = end.at_us,
      .ran = std::chrono::milliseconds(end.ran_ms),
      .host = plan.nodes.at(static_cast<size_t>(plan.node_of(end.rank))).host,
      .out_of_memory = end.out_of_memory < 0 ? std::nullopt : std::optional(end.out_of_memory > 0),
      .hung = end.hung,
      .stopped = end.stopped,
      .threw = end.threw,
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
                   .at_us = end.at_us + session_.met->clock_offset_us,
                   .ran_ms = std::chrono::duration_cast<std::chrono::milliseconds>(end.ran).count(),
                   .hung = end.hung,
                   .stopped = end.stopped,
                   .threw = end.threw.substr(0, kLongestError),
                   .out_of_memory = end.out_of_memory ? static_cast<int>(*end.out_of_memory) : -1,
                   .asked_to_stop = end.asked_to_stop,
                   .log_path = rank.output().log_paths()};
  if (!end.exit.ok() && !end.asked_to_stop) {
    remote.program = shown_program();
    remote.last_lines = rank.output().last_lines();  // those of its victims would only cost room
    if (const std::optional<ErrorNote> error = error_of(end)) {
      remote.error = error->message.substr(0, kLongestError);
      remote.error_path = error->path;
    }
  }
  return remote;
}

/// `event`: what happens on this node, in this start.
void Attempt::tell(JobEvent event) {
  event.node = session_.plane->node();
  event.restart = session_.job.description.restart;
  session_.plane->tell(std::move(event));
}

void Attempt::tell_of_spawn_failure(const SpawnError& error) {
  const int started = static_cast<int>(ranks_.size());  // the one after them did not
  spawn_failure_ = RemoteEnd{.rank = session_.job.description.first_rank + started,
                             .code = error.exit_code,
                             .at_us = now_us(session_.met->clock_offset_us),
                             .last_lines = {error.text.substr(0, error.text.find('\n'))},
                             .program = shown_program()};
  tell({.kind = JobEvent::Kind::kFailed, .ends = {*spawn_failure_}});
}

bool Attempt::waiting_for_others() const {
  const bool in_vain = give_up_on_others_ && Clock::now() >= *give_up_on_others_;
  return !(told_end_ && session_.others->over()) && !in_vain;
}

std::vector<std::string> Attempt::names(const std::vector<int>& nodes) const {
  std::vector<std::string> texts;
  for (const int number : nodes) {
    const JobPlan::Node& node = session_.met->plan.nodes.at(static_cast<size_t>(number));
    texts.push_back(fmt::format("node {} ({}, {})", number, node.host, node.address));
  }
  return texts;
}

void Attempt::hear_other_nodes() {
  JobState& others = *session_.others;
  for (JobEvent& event : session_.plane->events()) {
    if (event.kind == JobEvent::Kind::kLost && event.at_us == 0) {
      const KeepAlive& keep_alive = session_.met->plan.keep_alive;
      const auto silent = keep_alive.limit() + keep_alive.interval;
      event.at_us =
          now_us(session_.met->clock_offset_us) - std::chrono::microseconds(silent).count();
    }
    const bool stopping = others.stopping();
    others.add(event);
    const bool elsewhere = event.node != session_.plane->node();
    if (elsewhere && event.kind == JobEvent::Kind::kFailed && !event.ends.empty() &&
        !died_by_signal(event.ends.front())) {
      std::vector<RankEnd> ends;
      end_those_stopped(ends);
      judge(ends);
    }
    if (!elsewhere && event.kind == JobEvent::Kind::kLost) {
      session_.say(
          "[launch] the other nodes took this one for lost: its launcher stood still, or its "
          "machine "
          "or network did not answer\n");
    }
    if (elsewhere && event.kind == JobEvent::Kind::kInterrupted) {
      event.signal == SIGKILL ? policy_.hurry(Clock::now())
                              : policy_.interrupt_elsewhere(event.signal, Clock::now());
    }
    if (!stopping && others.stopping() && elsewhere && any_running()) {
      const JobPlan::Node& node = session_.met->plan.nodes.at(static_cast<size_t>(event.node));
      session_.say_for_all(fmt::format("[launch] node {} ({}) {}; stopping the ranks of this one\n",
                                       event.node,
                                       node.host,
                                       describe(event.kind)));
    }
  }
  if (others.stopping()) {
    policy_.stop(Clock::now(), StopPolicy::kForOthersToFail);
  }
}

/// Tells the others how our ranks have ended.
void Attempt::tell_end() {
  told_end_ = true;
  ended_at_ = Clock::now();
  JobEvent event{.kind = JobEvent::Kind::kEnded, .left_behind = left_};
  for (Rank& rank : ranks_) {
    rank.output().forward_rest();
  }
  if (verdict_.first()) {
    event.ends.push_back(to_remote(*verdict_.first()));
  }
  for (const RankEnd& end : verdict_.others()) {
    event.ends.push_back(to_remote(end));
  }
  if (spawn_failure_) {
    event.ends.push_back(*spawn_failure_);
  }
  tell(std::move(event));
}

/// Node 0 writes down what comes of a start in which a rank failed.
void Attempt::decide(RestartPolicy& restarts) {
  const std::optional<RemoteEnd> first = session_.others->first_failure();
  if (session_.plane->node() != 0 || !session_.others->undecided() || !first || decided_) {
    return;
  }
  decided_ = true;
  const RankEnd end = to_local(*first, session_.met->plan);
  const auto wait = session_.others->may_restart() ? restarts.next(end) : std::nullopt;
  const char* const why = session_.others->something_left() ? kNotOverThem : "";
  tell({.kind = JobEvent::Kind::kDecided,
        .wait_ms = wait ? wait->count() : -1,
        .text = restarts.describe(end, wait) + why});
}

void Attempt::say_who_is_awaited() {
  if (told_end_ && !told_waiting_ && Clock::now() >= ended_at_ + kWaitingNotice) {
    told_waiting_ = true;
    session_.say(fmt::format("[launch] the ranks of this node have ended; waiting for {}\n",
                             fmt::join(names(session_.others->awaited()), ", ")));
  }
}

void Attempt::talk_to_other_nodes(RestartPolicy& restarts) {
  hear_other_nodes();
  if (!told_end_ && (!left_ || policy_.given_up(Clock::now()))) {
    tell_end();
  }
  decide(restarts);
  say_who_is_awaited();
  if (told_end_ && session_.others->stopping() && !give_up_on_others_) {
    give_up_on_others_ = Clock::now() + std::chrono::milliseconds(session_.met->plan.grace_ms) +
                         StopPolicy::kPatience + kAttemptNodesForTheNetwork;
  }
  if (told_end_ && policy_.hurried() && !hurried_) {
    hurried_ = true;
    const Clock::time_point soon = Clock::now() + kForTheHurried;
    give_up_on_others_ = std::min(give_up_on_others_.value_or(soon), soon);
  }
}

/// The last words on a job of several nodes: every launcher comes to the same ones.
void Attempt::report_job(Outcome& outcome, bool undying) {
  const JobState& job = *session_.others;
  const JobPlan& plan = session_.met->plan;
  std::vector<RankEnd> ends;
  for (const RemoteEnd& end : job.others()) {
    ends.push_back(to_local(end, plan));
  }
  const std::optional<RemoteEnd> first = job.first_failure();
  const std::optional<int> signal =
      job.interrupted_by() ? job.interrupted_by() : policy_.interrupted_by();
  outcome.interrupted = signal.has_value();
  outcome.signal = signal;
  outcome.lost = names(job.lost_nodes());
  outcome.exit_code = undying ? 1 : 0;
  const bool node_zero_lost = std::ranges::count(job.lost_nodes(), 0) > 0;
  const auto say = [&](const std::string& text) {
    node_zero_lost ? session_.say(text) : session_.say_for_all(text);
  };
  say(render_lost(names(job.lost_nodes())));
  if (!job.over()) {
    std::vector<int> silent = job.awaited();
    std::erase(silent, session_.plane->node());
    say(silent.empty() ? ""
                       : fmt::format("[launch] {} did not say in time how its ranks ended\n",
                                     fmt::join(names(silent), ", ")));
  }
  // What ranks elsewhere say of a node that is gone is a consequence, unless a signal ended them.
  const bool of_a_lost_node =
      first && std::ranges::count(job.lost_nodes(), plan.node_of(first->rank)) > 0;
  const bool before =
      first && job.lost_since_us() && first->at_us < *job.lost_since_us() - kCascade;
  std::vector<RankEnd> all = ends;
  if (first) {
    all.push_back(to_local(*first, plan));
  }
  if (ask_to_resume(all) && job.lost_nodes().empty() && !undying) {
    outcome.exit_code = resumable_code(outcome.signal);
    say(render_resumable(outcome.exit_code));
  } else if (first &&
             (job.lost_nodes().empty() || of_a_lost_node || before || died_by_signal(*first))) {
    const RankEnd end = to_local(*first, plan);
    outcome.exit_code = end.exit.shell_code();
    if (job.decision() && job.decision()->wait_ms >= 0 && !undying) {
      outcome.restart_after = std::chrono::milliseconds(job.decision()->wait_ms);
    }
    outcome.failure = {
        .first = end,
        .last_lines = first->last_lines,
        .error = first->error.empty()
                     ? std::nullopt
                     : std::optional(ErrorNote{.message = first->error, .path = first->error_path}),
        .log_path = first->log_path,
        .others = ends,
        .host = end.host,
        .program = first->program,
        .what_now =
            job.decision() ? job.decision()->text : fmt::format("exit code {}", outcome.exit_code)};
    say(render(*outcome.failure));
  } else if (!job.lost_nodes().empty() || (!job.over() && !signal)) {
    if (first) {
      say(fmt::format("[launch] around the same time {}\n", describe(to_local(*first, plan))));
    }
    outcome.exit_code = 1;
    say(fmt::format("[launch] exit code 1. See {}\n", catalogue_section("node-lost")));
  } else if (signal) {
    outcome.exit_code = 128 + *signal;
    say(render_unexpected(*signal, ends));
    say(render_stopped(*signal));
  }
}

}  // namespace argosy::launch
