#include "argosy/launch/attempt.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/launch/process_setup.h"
#include "argosy/launch/report.h"
#include "argosy/os/addresses.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using rendezvous::MissedRank;

/// The others usually stop at once, and the report says it all; only when they do not is a first
/// word needed while they are waited for.
constexpr auto kNoticeDelay = 300ms;

/// By a code or an abort, as programs react to the loss of a peer.
bool fails_by_itself(const RankEnd& end) {
  return !end.exit.ok() && (end.exit.signal == 0 || end.exit.signal == SIGABRT);
}

/// The loop waits no longer than this for a store on another node when a rank was killed.
constexpr auto kForTheStore = 2s;

/// How often to look whether what the ranks left behind has ended; SIGCHLD tells of most.
constexpr auto kLeftoverTick = 20ms;

}  // namespace

Attempt::Attempt(Session& session) : session_(session), policy_(session.options.shutdown_timeout) {}

Outcome Attempt::run(RestartPolicy& restarts) {
  std::optional<SpawnError> error;
  if (!session_.state.stopping()) {
    error = ranks_.start(hangs_, leftovers_);
  }
  if (error) {
    session_.say(error->text);
    policy_.stop(Clock::now());
    send_signals();
    tell_of_spawn_failure(*error);
  }
  leftovers_.reap();  // of those that ended before we had our signals, none will tell
  leftovers_.look();
  talk(restarts);  // where none was started, nothing of ours will wake us
  while (talk_.waiting()) {
    turn(restarts);
  }
  Outcome outcome = report();
  if (error && !session_.met) {  // what was said of it is all there is to say
    return {.exit_code = error->exit_code, .signal = outcome.signal};
  }
  outcome.node_zero_lost ? session_.say(outcome.words) : session_.say_for_all(outcome.words);
  return outcome;
}

/// One round: wait for something, then do everything that is to be done.
void Attempt::turn(RestartPolicy& restarts) {
  ++turn_;
  session_.output.flush();  // before the wait: nothing wakes it for a file that has room
  wait_for_events();
  read_signals();
  take_ends();
  ranks_.forward_output();
  if (!policy_.stopping()) {
    hangs_.look();
    judge(hangs_.end_the_hung());
  }
  leftovers_.reap();
  leftovers_.look();
  if (!ranks_.any_running() && leftovers_.any()) {
    policy_.stop(Clock::now());
  }
  talk(restarts);
  send_signals();
  give_notice();
}

/// Those that are due by the policy.
void Attempt::send_signals() {
  if (const std::optional<int> signal = policy_.due(Clock::now())) {
    if (*signal == SIGKILL && leftovers_.any()) {
      session_.say(policy_.hurried()
                       ? "[launch] killing the ranks at once\n"
                       : fmt::format("[launch] {} did not stop within {}; sending SIGKILL\n",
                                     ranks_.any_running() ? ranks_.running_names()
                                                          : "processes that the ranks started",
                                     text::duration(session_.options.shutdown_timeout)));
    }
    ranks_.signal_groups(*signal);
    sent_ = signal;
  }
  if (sent_ && !ranks_.any_running()) {  // a rank may need its helpers until it has ended
    leftovers_.signal_orphans(*sent_);
  }
}

void Attempt::give_notice() {
  if (first_ && !first_->told && ranks_.any_running() &&
      Clock::now() >= first_->seen_at + kNoticeDelay) {
    first_->told = true;
    session_.say(fmt::format("[launch] {}; stopping the others\n", describe(first_->end)));
  }
  if (ranks_.any_running()) {
    session_.tell_of_closed_output("; the ranks continue");
  }
}

void Attempt::wait_for_events() {
  polls_.clear();
  const auto add = [&](int fd, short events) { polls_.push_back({fd, events, 0}); };
  add(session_.signals.fd(), POLLIN);
  add(session_.exits.fd(), POLLIN);
  add(session_.journal->fd(), POLLIN);  // poll() passes over a negative one
  for (Sink* sink : {&session_.output.out(), &session_.output.err()}) {
    if (sink->pending()) {
      add(sink->poll_fd(), POLLOUT);
    }
  }
  ranks_.add_to(polls_);
  const std::chrono::milliseconds timeout = time_to_wake();
  (void)::poll(polls_.data(), polls_.size(), static_cast<int>(timeout.count()));
}

/// How long poll() may wait; negative: for ever.
std::chrono::milliseconds Attempt::time_to_wake() {
  // Once nothing of ours is left, only the others are waited for.
  std::optional<Clock::time_point> wake = talk_.told_end() ? std::nullopt : policy_.wake();
  const auto no_later_than = [&](Clock::time_point at) { wake = std::min(wake.value_or(at), at); };
  if (first_ && !first_->told && ranks_.any_running()) {
    no_later_than(first_->seen_at + kNoticeDelay);
  }
  if (!ranks_.any_running() && leftovers_.any() && !talk_.told_end()) {
    no_later_than(Clock::now() + kLeftoverTick);
  }
  if (const auto others = talk_.wake()) {
    no_later_than(*others);
  }
  if (const auto pause = hangs_.time_between_looks();
      pause && ranks_.any_running() && !policy_.stopping()) {
    no_later_than(Clock::now() + *pause);
  }
  if (!wake) {
    return -1ms;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wake - Clock::now());
  return std::clamp<std::chrono::milliseconds>(left, 0ms, 1h);
}

void Attempt::read_signals() {
  while (const std::optional<int> signal = session_.signals.next()) {
    if (*signal == SIGCHLD) {
      continue;  // pidfds tell which
    }
    if (*signal == SIGUSR1 || *signal == SIGUSR2) {
      ranks_.signal_processes(*signal);
      continue;
    }
    if (*signal == SIGTSTP || *signal == SIGCONT) {
      suspend_or_resume(*signal);
      continue;
    }
    const bool hurried = policy_.hurried();
    policy_.interrupt(*signal, Clock::now());
    if (policy_.hurried() && !hurried) {
      talk_.tell({.kind = JobEvent::Kind::kInterrupted, .signal = SIGKILL});
    } else if (!session_.state.interrupted_by()) {
      talk_.tell({.kind = JobEvent::Kind::kInterrupted, .signal = *signal});
    }
    if (!told_of_signal_ && ranks_.any_running()) {
      told_of_signal_ = true;
      session_.say(fmt::format(
          "[launch] received {} and passed it on to the ranks, which have {} to stop; a second "
          "signal kills them at once\n",
          os::signal_name(*signal),
          text::duration(session_.options.shutdown_timeout)));
    }
  }
}

/// Ctrl-Z, and fg or bg after it: the ranks are in groups of their own, which the shell does not
/// know.
void Attempt::suspend_or_resume(int signal) {
  if (signal == SIGTSTP) {
    leftovers_.suspend_or_resume(SIGTSTP);
    session_.output.flush();
    stop_as_asked();
  }
  leftovers_.suspend_or_resume(SIGCONT);
  hangs_.begin_anew();
}

/// Reaps the ranks that have ended, in the order of their deaths.
void Attempt::take_ends() {
  std::vector<RankEnd> batch = ranks_.reap();
  if (!policy_.stopping() && std::ranges::any_of(batch, fails_by_itself)) {
    const std::vector<RankEnd> stopped = hangs_.end_the_stopped();  // the cause goes first
    batch.insert(batch.begin(), stopped.begin(), stopped.end());
  }
  judge(std::move(batch));
}

/// What the ends mean for the job, once they are known.
void Attempt::judge(std::vector<RankEnd> batch) {
  if (!batch.empty() && !first_) {
    wall_ = WallClock();  // a machine that slept since the ranks started has other times now
  }
  std::vector<RankEnd> failed;
  for (RankEnd& end : batch) {
    end.turn = turn_;
    place(end, ranks_.time_of(end));
    if (const MissedRank then = if_killed(end); then != MissedRank::kEndsTheJob) {
      if (replace(end)) {
        continue;
      }
      if (then == MissedRank::kIsMissed) {
        miss(end);
        end.exit = {};
      }
    }
    if (!end.exit.ok()) {
      failed.push_back(end);
    }
    ends_.push_back(std::move(end));
  }
  if (policy_.stopping() || failed.empty()) {
    return;  // once the job stops, for whatever reason, no end is the cause any more
  }
  first_ = FirstFailure{.end = failed[root_cause(failed)], .seen_at = Clock::now()};
  policy_.stop(first_->seen_at,
               !first_->end.stopped.empty()   ? StopPolicy::kForOthersToSay
               : fails_by_itself(first_->end) ? StopPolicy::kForOthersToFail
                                              : 0ms);
  talk_.tell({.kind = JobEvent::Kind::kFailed, .ends = {ranks_.with_words(first_->end)}});
}

MissedRank Attempt::if_killed(const RankEnd& end) const {
  // One that fails by itself has something to say, and the others do too little without it.
  if (!session_.job.description.servers || end.exit.ok() || policy_.stopping() ||
      fails_by_itself(end)) {
    return MissedRank::kEndsTheJob;
  }
  if (const RoleOfRank role = this->role_of(end.rank); role.name == "server") {
    const auto ended = std::ranges::count_if(
        ends_, [&](const RankEnd& other) { return this->role_of(other.rank).name == "server"; });
    return ended + 1 < role.count ? MissedRank::kIsMissed : MissedRank::kEndsTheJob;
  }
  try {
    return rendezvous::if_missed(*session_.meeting_store(),
                                 start_id(session_.job.description),
                                 end.rank,
                                 Deadline::after(kForTheStore));
  } catch (const Error& error) {
    session_.say(fmt::format("[launch] {}\n", error.what()));
    return MissedRank::kEndsTheJob;
  }
}

bool Attempt::replace(const RankEnd& killed) {
  int& times = replaced_[killed.rank];
  // One that was stopped or stood still has been killed, and is not reaped yet.
  const bool is_gone = killed.stopped.empty() && killed.hung.empty();
  if (!is_gone || times >= session_.options.max_restarts) {
    return false;
  }
  if (const auto error = ranks_.start_again(killed.rank, hangs_, leftovers_)) {
    session_.say(error->text);
    return false;
  }
  session_.say(fmt::format(
      "[launch] {}: {}; it is started again ({} of {}), and the others go on meanwhile\n",
      name_of(killed.rank),
      describe(killed),
      ++times,
      session_.options.max_restarts));
  return true;
}

void Attempt::miss(const RankEnd& killed) {
  session_.say(fmt::format(
      "[launch] {}: {}; the others go on without it\n", name_of(killed.rank), describe(killed)));
  try {
    rendezvous::tell_missed(*session_.meeting_store(),
                            start_id(session_.job.description),
                            killed.rank,
                            Deadline::after(kForTheStore));
  } catch (const Error& error) {  // they wait for it as long as they wait for anybody
    session_.say(fmt::format("[launch] {}\n", error.what()));
  }
}

RoleOfRank Attempt::role_of(int rank) const {
  const JobDescription& job = session_.job.description;
  return launch::role_of(job, rank - job.first_rank);
}

/// Returns "server 0" or "worker 1".
std::string Attempt::name_of(int rank) const {
  const RoleOfRank role = this->role_of(rank);
  return fmt::format("{} {}", role.name, role.index);
}

/// Says when, by node 0's clock, and on which node the rank of `end` ended.
void Attempt::place(RankEnd& end, Clock::time_point at) const {
  end.at_us = wall_.us(at) + (session_.met ? session_.met->clock_offset_us : 0);
  end.node = session_.journal->node();
  if (session_.met) {
    end.host = session_.met->plan.nodes.at(static_cast<size_t>(end.node)).host;
  }
}

/// The last words, and what they mean for the job.
Outcome Attempt::report() {
  ranks_.finish_output();
  const std::vector<pid_t> undying = leftovers_.abandon_the_undying();
  return outcome_of(session_.state,
                    session_.met ? session_.met->plan : JobPlan{},
                    {.node = session_.journal->node(),
                     .host = os::host_name(),
                     .signal = policy_.interrupted_by(),
                     .left_behind = leftovers_.tell(undying),
                     .undying = !undying.empty()});
}

void Attempt::tell_of_spawn_failure(const SpawnError& error) {
  spawn_failure_ = ranks_.end_of_unstarted(error);
  place(*spawn_failure_, Clock::now());
  talk_.tell({.kind = JobEvent::Kind::kFailed, .ends = {*spawn_failure_}});
}

void Attempt::hear() {
  const auto ours = ranks_.any_running() ? JobTalk::OurRanks::kRun : JobTalk::OurRanks::kEnded;
  talk_.hear(ours, [this] { judge(hangs_.end_the_stopped()); });
}

/// Hears what all launchers tell, this one included, and tells what is due.
void Attempt::talk(RestartPolicy& restarts) {
  hear();
  if (!talk_.told_end() && (!leftovers_.any() || policy_.given_up(Clock::now()))) {
    tell_end();
    hear();
  }
  talk_.decide(restarts);
  hear();
  talk_.wait_for_others();
}

/// How our ranks have ended, with all that they wrote.
void Attempt::tell_end() {
  ranks_.finish_output();
  std::vector<RankEnd> ends;
  std::ranges::transform(
      ends_, std::back_inserter(ends), [&](const RankEnd& end) { return ranks_.with_words(end); });
  if (spawn_failure_) {
    ends.push_back(*spawn_failure_);
  }
  talk_.tell_end(std::move(ends),
                 leftovers_.any() ? JobTalk::Remains::kProcesses : JobTalk::Remains::kNothing);
}

}  // namespace argosy::launch
