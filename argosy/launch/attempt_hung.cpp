// How an attempt finds ranks that stand still: by their silence, and by the kernel's word that they
// are stopped.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/launch/attempt.h"
#include "argosy/launch/environment.h"
#include "argosy/launch/report.h"
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

std::string describe(const os::Stopped& how) {
  return "stopped by " + how.by;
}

/// The rank may be a shell around the program.
std::optional<os::Stopped> look_at(pid_t rank) {
  for (const pid_t pid : os::with_descendants(rank, kMostLookedAt)) {
    if (std::optional<os::Stopped> found = os::stopped(pid)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

/// nullopt: nobody waits for a rank that is alone.
std::optional<std::chrono::milliseconds> Attempt::time_between_looks() const {
  const std::chrono::milliseconds limit = session_.options.heartbeat_timeout;
  if (session_.job.description.world_size < 2) {
    return std::nullopt;
  }
  return limit > 0ms ? std::clamp<std::chrono::milliseconds>(limit / 8, 10ms, 1s) : kStoppedLook;
}

/// nullopt: it has ended, or tells nothing of its progress.
std::optional<os::Pulse> Attempt::pulse_of(size_t local) const {
  const bool tells = local < hearts_.size() && ranks_[local].running() && !ranks_[local].hung();
  return tells ? hearts_[local].read() : std::nullopt;
}

void Attempt::look_for_stopped() {
  const auto pause = time_between_looks();
  const auto now = Clock::now();
  if (!pause || now < next_look_ || policy_.stopping()) {
    return;
  }
  next_look_ = now + *pause;
  for (size_t local = 0; local < ranks_.size(); ++local) {
    const Rank& rank = ranks_[local];
    const std::optional<os::Pulse> pulse = pulse_of(local);
    const bool gets_on = !rank.running() || (pulse && pulse->silent < *pause);
    note_stopped(local, gets_on ? std::nullopt : look_at(rank.pid()));
  }
}

void Attempt::note_stopped(size_t local, const std::optional<os::Stopped>& now) {
  stopped_.resize(ranks_.size());
  std::optional<StoppedRank>& known = stopped_[local];
  if (!now) {
    if (known && !known->word.empty()) {
      try {
        (void)store()->remove(known->word, Deadline::after(kForAWord));
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

/// Where our ranks meet.
std::shared_ptr<rendezvous::Store> Attempt::store() const {
  return session_.met ? session_.met->store : session_.store->local();
}

/// For the other ranks, who cannot tell one that is stopped from one that died.
void Attempt::leave_word(size_t local) {
  StoppedRank& stopped = *stopped_[local];
  if (!stopped.word.empty()) {
    return;
  }
  try {
    stopped.word = rendezvous::tell_stopped(*store(),
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
RankEnd Attempt::end_stopped(size_t local) {
  leave_word(local);  // before its connections end
  Rank& rank = ranks_[local];
  const StoppedRank& stopped = *stopped_[local];
  const std::optional<os::Pulse> pulse = pulse_of(local);
  const std::string silence =
      text::duration(Clock::now() - stopped.since) +
      (pulse && !pulse->last.empty() ? fmt::format(" (last: {})", pulse->last) : "");
  session_.say(fmt::format("[launch] rank {} (pid {}) is {}; does not answer for {}; ending it\n",
                           rank.number(),
                           rank.pid(),
                           describe(stopped.how),
                           silence));
  RankEnd end = rank.end_stopped(describe(stopped.how), silence, stopped.since);
  end.at_us = job_time_us(rank.ended_at());
  return end;
}

/// A rank has failed, as ranks do that lose a peer: one of ours that is stopped is the cause then,
/// and goes before it.
void Attempt::end_those_stopped(std::vector<RankEnd>& ends) {
  if (policy_.stopping() || !time_between_looks()) {
    return;
  }
  for (size_t local = 0; local < ranks_.size(); ++local) {
    if (ranks_[local].running() && !ranks_[local].hung()) {
      note_stopped(local, look_at(ranks_[local].pid()));
      const std::optional<StoppedRank>& stopped = stopped_[local];
      if (stopped && (!stopped->how.traced || stopped->seen_twice)) {
        ends.insert(ends.begin(), end_stopped(local));
      }
    }
  }
}

/// Ranks that stand still, while the others wait for them. SIGABRT, for that shows where; one that
/// is stopped could not even do that.
void Attempt::end_the_hung() {
  if (policy_.stopping() || session_.options.heartbeat_timeout <= 0ms) {
    return;
  }
  const std::chrono::nanoseconds limit = session_.options.heartbeat_timeout;
  const auto now = Clock::now();
  const std::chrono::nanoseconds watched = now - watched_since_;
  if (!first_) {
    wall_ = WallClock();
  }
  std::vector<RankEnd> ends;
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
      note_stopped(local, look_at(rank.pid()));
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
      kill_hung_at_ = now + session_.options.shutdown_timeout;
    }
  }
  judge(ends);
  if (kill_hung_at_ && now >= *kill_hung_at_) {
    kill_hung_at_.reset();
    for (Rank& rank : ranks_) {
      if (rank.hung() && rank.running()) {
        rank.kill_hung();
      }
    }
  }
}

}  // namespace argosy::launch
