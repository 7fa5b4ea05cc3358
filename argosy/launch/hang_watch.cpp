#include "argosy/launch/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/launch/environment.h"
#include "argosy/rendezvous/stopped_ranks.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Without --heartbeat_timeout. The store takes a silent rank for lost after 10 to 15 s: by then it
/// must be known whether it is stopped.
constexpr auto kStoppedLook = 3s;
/// The loop waits no longer than this for a store on another node.
constexpr auto kForAWord = 500ms;
/// Processes of one rank that are looked at.
constexpr size_t kMostLookedAt = 64;
constexpr std::string_view kHeartbeat = "ARGOSY_HEARTBEAT_FD=";

std::string describe(const os::Stopped& how) {
  return "stopped by " + how.by;
}

}  // namespace

int HangWatch::watch(std::vector<std::string>& env, size_t local) {
  std::erase_if(env, [](const std::string& entry) { return entry.starts_with(kHeartbeat); });
  if (session_.options.heartbeat_timeout <= 0ms) {
    return -1;
  }
  auto heart = os::HeartbeatMonitor::create().or_throw<Error>("launch.heartbeat");
  if (local < hearts_.size()) {
    hearts_[local] = std::move(heart);
  } else {
    hearts_.push_back(std::move(heart));
  }
  env.push_back(fmt::format("{}{}", kHeartbeat, hearts_[local].fd()));
  return hearts_[local].fd();
}

std::optional<std::chrono::milliseconds> HangWatch::time_between_looks() const {
  const std::chrono::milliseconds limit = session_.options.heartbeat_timeout;
  if (session_.job.description.world_size < 2) {
    return std::nullopt;
  }
  return limit > 0ms ? std::clamp<std::chrono::milliseconds>(limit / 8, 10ms, 1s) : kStoppedLook;
}

/// nullopt: it has ended, or tells nothing of its progress.
std::optional<os::Pulse> HangWatch::pulse_of(size_t local) const {
  const bool tells = local < hearts_.size() && ranks_[local].running() && !ranks_[local].hung();
  return tells ? hearts_[local].read() : std::nullopt;
}

/// The rank may be a shell around the program, and the program may have children of its own: what
/// counts is the process that joined. Any of them where none has, or in a pid namespace of its own.
std::optional<os::Stopped> HangWatch::look_at(size_t local) const {
  const std::vector<pid_t> processes = os::with_descendants(ranks_[local].pid(), kMostLookedAt);
  std::optional<int64_t> joined;
  bool asked = false;
  for (const pid_t pid : processes) {
    std::optional<os::Stopped> found = os::stopped(pid);
    if (found && !std::exchange(asked, true)) {
      joined = process_that_joined(local);
      if (std::ranges::find(processes, joined.value_or(-1)) == processes.end()) {
        joined.reset();
      }
    }
    if (found && pid == joined.value_or(pid)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> HangWatch::process_that_joined(size_t local) const {
  try {
    return rendezvous::process_of_rank(*session_.meeting_store(),
                                       start_id(session_.job.description),
                                       ranks_[local].number(),
                                       Deadline::after(kForAWord));
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return std::nullopt;
  }
}

void HangWatch::look() {
  const auto pause = time_between_looks();
  const auto now = Clock::now();
  if (!pause || now < next_look_) {
    return;
  }
  next_look_ = now + *pause;
  for (size_t local = 0; local < ranks_.size(); ++local) {
    const Rank& rank = ranks_[local];
    const std::optional<os::Pulse> pulse = pulse_of(local);
    const bool gets_on = !rank.running() || (pulse && pulse->silent < *pause);
    note(local, gets_on ? std::nullopt : look_at(local));
  }
}

void HangWatch::note(size_t local, const std::optional<os::Stopped>& now) {
  stopped_.resize(ranks_.size());
  std::optional<StoppedRank>& known = stopped_[local];
  if (!now) {
    if (known && !known->word.empty()) {
      try {
        (void)session_.meeting_store()->remove(known->word, Deadline::after(kForAWord));
      } catch (const Error& error) {
        log::debug("{}", error.what());
      }
    }
    known.reset();
    return;
  }
  if (known) {
    known->seen_twice = true;
  } else {
    known = StoppedRank{.since = Clock::now()};
  }
  known->how = *now;
  if (!now->traced || known->seen_twice) {  // a tracer like strace stops it for a moment only
    leave_word(local);
  }
}

/// For the other ranks, who cannot tell one that is stopped from one that died.
void HangWatch::leave_word(size_t local) {
  StoppedRank& stopped = *stopped_[local];
  if (!stopped.word.empty()) {
    return;
  }
  try {
    stopped.word = rendezvous::tell_stopped(*session_.meeting_store(),
                                            start_id(session_.job.description),
                                            ranks_[local].number(),
                                            describe(stopped.how),
                                            Deadline::after(kForAWord));
  } catch (const Error& error) {  // they then say that it is gone
    log::debug("{}", error.what());
  }
}

/// Ends a rank that is stopped. The end counts from now on: a debugger may keep the kernel's word
/// of it for long.
RankEnd HangWatch::end_stopped(size_t local) {
  leave_word(local);  // before its connections end
  Rank& rank = ranks_[local];
  const StoppedRank& stopped = *stopped_[local];
  const std::optional<os::Pulse> pulse = pulse_of(local);
  const std::string silence =
      text::duration(Clock::now() - stopped.since) +
      (pulse && !pulse->last.empty() ? fmt::format(" (last: {})", pulse->last) : "");
  session_.say(
      fmt::format("[launch] rank {} (pid {}) is {} and has not answered for {}; ending it\n",
                  rank.number(),
                  rank.pid(),
                  describe(stopped.how),
                  silence));
  return rank.end_stopped(describe(stopped.how), silence, stopped.since);
}

std::vector<RankEnd> HangWatch::end_the_stopped() {
  std::vector<RankEnd> ends;
  for (size_t local = 0; time_between_looks() && local < ranks_.size(); ++local) {
    if (ranks_[local].running() && !ranks_[local].hung()) {
      note(local, look_at(local));
      const std::optional<StoppedRank>& stopped = stopped_[local];
      if (stopped && (!stopped->how.traced || stopped->seen_twice)) {
        ends.push_back(end_stopped(local));
      }
    }
  }
  return ends;
}

/// SIGABRT, for that shows where; one that is stopped could not even do that.
std::vector<RankEnd> HangWatch::end_the_hung() {
  std::vector<RankEnd> ends;
  const std::chrono::nanoseconds limit = session_.options.heartbeat_timeout;
  if (limit <= 0ms) {
    return ends;
  }
  const auto now = Clock::now();
  const std::chrono::nanoseconds watched = now - since_;
  stopped_.resize(ranks_.size());
  for (size_t local = 0; local < hearts_.size() && local < ranks_.size(); ++local) {
    Rank& rank = ranks_[local];
    if (!rank.running() || rank.hung()) {
      continue;
    }
    const std::optional<os::Pulse> pulse = pulse_of(local);
    const bool silent = !pulse || std::min(pulse->silent, watched) >= limit;
    const bool hangs = pulse && silent && pulse->waiting <= 0;
    if (hangs) {
      note(local, look_at(local));
    }
    const std::optional<StoppedRank>& stopped = stopped_[local];
    if (stopped && (hangs || (silent && now - stopped->since >= limit))) {
      ends.push_back(end_stopped(local));
    } else if (hangs) {
      rank.end_hung(fmt::format("{} (last: {})", text::duration(pulse->silent), pulse->last));
      session_.say(fmt::format("[launch] rank {} (pid {}) has done nothing for {}; ending it\n",
                               rank.number(),
                               rank.pid(),
                               text::duration(pulse->silent)));
      kill_at_ = now + session_.options.shutdown_timeout;
    }
  }
  kill_who_hangs_on();
  return ends;
}

void HangWatch::kill_who_hangs_on() {
  if (kill_at_ && Clock::now() >= *kill_at_) {
    kill_at_.reset();
    for (Rank& rank : ranks_) {
      if (rank.hung() && rank.running()) {
        rank.kill_hung();
      }
    }
  }
}

void HangWatch::begin_anew() {
  since_ = Clock::now();
  for (size_t local = 0; local < stopped_.size(); ++local) {
    note(local, std::nullopt);
  }
}

}  // namespace argosy::launch
