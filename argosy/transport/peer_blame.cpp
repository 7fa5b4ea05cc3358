/// PeerWatch's search for who is to blame; the rest of it is in peer_watch.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <thread>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"
#include "argosy/rendezvous/stopped_ranks.h"
#include "argosy/transport/peer_notes.h"
#include "argosy/transport/peer_watch.h"

namespace argosy::transport {
namespace {

/// "300 s", "250 ms"
std::string in_words(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

using std::chrono::milliseconds;

constexpr milliseconds kPoll{10};               ///< between two looks at the store
constexpr milliseconds kBeforeItHasEnded{200};  ///< see known_to_have_ended()

}  // namespace

bool PeerWatch::someone_is_gone() {
  try {
    const std::optional<Muster> muster = look();
    return muster && find_blame(*muster, -1, false);
  } catch (const Error&) {
    return false;
  }
}

/// nullopt: the store is slow, which is not dead; the caller looks again.
std::optional<Muster> PeerWatch::look() {
  try {
    // In the opposite order to that in which a rank leaves the group and then the job: whoever left
    // in between is then in a later list, and not taken for one that never came.
    Muster muster;
    const Deadline deadline = Deadline::after(options_.patience);
    if (options_.job != nullptr) {
      muster.left_job = options_.job->departures(std::string(kMember), deadline);
    }
    muster.present = store_->members(std::string(kMember), deadline);
    muster.left = store_->departures(std::string(kMember), deadline);
    return muster;
  } catch (const TimeoutError&) {
    return std::nullopt;
  }
}

/// The first lost rank that is not a victim; else whom a victim blames; else, if asked for, who
/// left in peace while others still needed it.
std::optional<Blame> PeerWatch::find_blame(const Muster& muster, int peer, bool accept_left) const {
  std::set<int> known{rank_};
  std::set<std::string> present;
  for (const auto& member : muster.present) {
    present.insert(member.name);
    known.insert(rank_of(member.name));
  }
  for (const auto& departure : muster.left) {
    known.insert(rank_of(departure.member));
  }
  std::optional<Blame> stranger = find_blame_in_job(muster.left_job, known);
  const rendezvous::Departure* victim = nullptr;
  const rendezvous::Departure* left = nullptr;
  for (const auto& departure : muster.left) {
    if (present.contains(departure.member) || departure.member == member_name(rank_)) {
      continue;
    }
    const int rank = rank_of(departure.member);
    if (is_victim(departure.note)) {
      victim = victim == nullptr ? &departure : victim;
    } else if (departure.lost) {
      if (left != nullptr && peer >= 0) {
        break;  // the broken link led to one that had left before
      }
      return Blame{{rank}, story_of_lost(rank, in_words(departure.note))};
    } else if (accept_left && left == nullptr && (peer < 0 || rank == peer)) {
      left = &departure;
    }
  }
  if (victim != nullptr) {
    auto blame = Blame::parse(victim->note);
    if (blame && (blame->kind == Blame::Kind::kMismatch || !blame->peers.empty())) {
      return blame;
    }
  }
  if (stranger) {
    return stranger;
  }
  if (left != nullptr) {
    const int rank = rank_of(left->member);
    return Blame{{rank},
                 fmt::format("{} left the group while others still needed it ({})",
                             names_.one(rank),
                             in_words(left->note))};
  }
  return std::nullopt;
}

/// Why the store lost a rank. Its connection ends with its process, and also when it is silent for
/// long: stopped, cut off, or its machine without power. `last_seen`: what it did.
std::string PeerWatch::story_of_lost(int rank, const std::string& last_seen) const {
  const std::map<int, std::string> stopped_now = stopped();
  const auto found = stopped_now.find(rank);
  if (found != stopped_now.end()) {
    return fmt::format(
        "{} does not answer: it is {} ({})", names_.one(rank), found->second, last_seen);
  }
  return known_to_have_ended(rank)
             ? fmt::format("{} died (its process ended without leaving the group; {})",
                           names_.one(rank),
                           last_seen)
             : fmt::format(
                   "{} is gone (its process ended without leaving the group, or does not "
                   "answer; {})",
                   names_.one(rank),
                   last_seen);
}

/// A process that ends closes its connections a moment before the kernel says that it has ended.
bool PeerWatch::known_to_have_ended(int rank) const {
  const Deadline moment = Deadline::after(kBeforeItHasEnded);
  while (options_.has_ended) {
    if (options_.has_ended(rank)) {
      return true;
    }
    if (moment.expired()) {
      break;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

/// Ranks of the group that are stopped, and how, as far as a launcher says so.
std::map<int, std::string> PeerWatch::stopped() const {
  std::map<int, std::string> found;
  if (options_.job == nullptr) {
    return found;
  }
  try {
    const Deadline deadline = Deadline::after(options_.patience);
    for (auto& [world_rank, how] : rendezvous::stopped_ranks(*options_.job, deadline)) {
      const int rank = names_.from_world(world_rank, size_);
      if (rank >= 0) {
        found[rank] = how;
      }
    }
  } catch (const Error&) {  // a store that is slow or gone says nothing about them
  }
  return found;
}

/// A rank of the job that is gone and was never seen in this group, or left the job with a reason.
/// `known`: who was seen here.
std::optional<Blame> PeerWatch::find_blame_in_job(
    const std::vector<rendezvous::Departure>& departures, const std::set<int>& known) const {
  for (const auto& departure : departures) {
    const int rank = names_.from_world(rank_of(departure.member), size_);
    const bool stranger = rank >= 0 && !known.contains(rank);
    if (stranger && departure.lost) {
      return Blame{{rank}, story_of_lost(rank, "it had not come to the group yet")};
    }
    if (rank != rank_ && rank >= 0 && !departure.lost && (stranger || !departure.note.empty())) {
      return Blame{
          {rank},
          fmt::format("{} left the job{}",
                      names_.one(rank),
                      departure.note.empty() ? " before it came to the group"
                                             : fmt::format(" (it said: {})", departure.note))};
    }
  }
  return std::nullopt;
}

/// Ranks that are not known to have reached operation `seq`, with what each of them did last. A
/// rank that waits inside an earlier operation is itself stuck, so it is named only where nobody is
/// absent who does not wait. Who failed, as this rank does now, is not absent.
std::vector<int> PeerWatch::absentees(const Muster& muster,
                                      int64_t seq,
                                      std::vector<std::string>& last_words) const {
  std::map<int, std::string> notes;  // of those who came
  std::set<int> left;
  for (const auto& departure : muster.left) {
    notes[rank_of(departure.member)] = departure.note;
    left.insert(rank_of(departure.member));
  }
  for (const auto& member : muster.present) {
    notes[rank_of(member.name)] = member.note;
    left.erase(rank_of(member.name));
  }
  std::vector<int> absent, stuck;
  for (int rank = 0; rank < size_; ++rank) {
    const auto note = notes.find(rank);
    const auto progress = note == notes.end() ? std::nullopt : Progress::decode(note->second);
    const bool arrived = note != notes.end() && (seq == 0 || is_victim(note->second) ||
                                                 (progress && progress->seq >= seq));
    if (rank != rank_ && !arrived) {
      (progress && progress->inside && progress->seq > 0 ? stuck : absent).push_back(rank);
    }
  }
  if (absent.empty()) {
    absent = std::move(stuck);
  }
  last_words.clear();
  for (const int rank : absent) {
    const auto note = notes.find(rank);
    last_words.push_back(
        fmt::format("{}: {}{}",
                    names_.one(rank),
                    left.contains(rank) ? "it left the group; " : "",
                    note == notes.end() ? "it never joined the group" : in_words(note->second)));
  }
  return absent;
}

/// How another rank called collective `seq`, where it called it otherwise; empty where nobody did.
std::string PeerWatch::disagreement_at(int64_t seq, const Muster& muster) {
  std::map<int, std::string> notes;
  for (const auto& departure : muster.left) {
    notes[rank_of(departure.member)] = departure.note;
  }
  for (const auto& member : muster.present) {
    notes[rank_of(member.name)] = member.note;
  }
  const Progress mine = progress();
  for (const int64_t at : {seq - 1, seq}) {
    const std::optional<Call> my_call = mine.call_at(at);
    for (const auto& [rank, note] : notes) {
      const auto other = Progress::decode(note);
      const std::optional<Call> theirs = other ? other->call_at(at) : std::nullopt;
      if (my_call && theirs && *my_call != *theirs) {
        return disagreement(names_.one(rank_), *my_call, names_.one(rank), *theirs);
      }
    }
  }
  return {};
}

std::exception_ptr PeerWatch::link_broken(const std::string& op,
                                          int64_t seq,
                                          int peer,
                                          const std::string& reason) {
  const std::lock_guard lock(explain_mutex_);
  if (cause_ != nullptr) {
    return cause_;
  }
  const CommContext context{.op = op, .group = options_.group, .rank = rank_, .seq = seq};
  if (left_) {
    return std::make_exception_ptr(CommError(
        where(op),
        fmt::format("{}: the transport was closed while {}{} waited.", myself(), op, number(seq)),
        context));
  }
  // Longer than timed_out() takes: where a deadline broke the connection at the other end, that
  // rank is still finding out whom it waited for.
  const Deadline deadline = Deadline::after(2 * options_.patience);
  std::optional<Muster> muster;
  std::optional<Blame> blame;
  try {
    publish_failure(op, seq);
    while (!blame) {
      // Who left in peace is blamed at once only when the broken link led to it.
      muster = look();
      blame = muster ? find_blame(*muster, peer, peer >= 0) : std::nullopt;
      if (blame || deadline.expired()) {
        break;
      }
      std::this_thread::sleep_for(kPoll);
    }
    if (!blame && muster) {
      blame = find_blame(*muster, -1, true);
    }
  } catch (const Error& e) {
    return store_is_gone(op, seq, e.what());
  }
  if (!blame) {
    const std::string to = peer < 0 ? "a rank" : names_.one(peer);
    blame = Blame{peer < 0 ? std::vector<int>{} : std::vector<int>{peer},
                  fmt::format("the connection to {} broke although {} is alive", to, to)};
  }
  CommContext known = context;
  known.peers = blame->peers;
  known.mismatch = blame->kind == Blame::Kind::kMismatch;
  return fail(std::make_exception_ptr(CommError(where(op),
                                                fmt::format("{}: {}; {}{} cannot complete ({}). "
                                                            "See {}.",
                                                            myself(),
                                                            blame->story,
                                                            op,
                                                            number(seq),
                                                            reason,
                                                            catalogue_section("transport")),
                                                known)),
              *blame);
}

/// What the ranks' notes say of an operation that failed.
struct PeerWatch::Findings {
  std::optional<Blame> blame{};
  std::vector<int> absent{};  ///< did not come to it
  std::vector<std::string> last_words{};
  std::string disagreement{};
};

std::exception_ptr PeerWatch::timed_out(const std::string& op,
                                        int64_t seq,
                                        milliseconds timeout,
                                        const std::vector<int>& awaited) {
  const std::lock_guard lock(explain_mutex_);
  if (cause_ != nullptr) {
    return cause_;
  }
  Findings found{.absent = awaited};
  try {
    found = inquire(op, seq, std::move(found));
  } catch (const Error& e) {
    return store_is_gone(op, seq, e.what());
  }
  if (found.blame) {
    return fail_as_others(op, seq, *found.blame);
  }
  if (!found.disagreement.empty()) {
    return fail_by_mismatch(op, seq, found.disagreement);
  }
  std::vector<int>& absent = found.absent;
  std::vector<std::string>& last_words = found.last_words;
  if (const std::map<int, std::string> not_running = stopped(); !not_running.empty()) {
    absent.clear();
    last_words.clear();
    for (const auto& [rank, how] : not_running) {
      absent.push_back(rank);
      last_words.push_back(fmt::format("{} does not answer: it is {}", names_.one(rank), how));
    }
  }
  const CommContext context{
      .op = op, .group = options_.group, .rank = rank_, .peers = absent, .seq = seq};
  const std::string after = fmt::format("{} timed out after {}", op, in_words(timeout));
  const std::string story =
      absent.empty()
          ? fmt::format(
                "{}{}: every rank has reached it, but the data of {} did not arrive; the "
                "ranks may have called it with different sizes (ARGOSY_CHECKED=1 tells), or the "
                "network is stuck",
                after,
                number(seq),
                awaited.empty() ? "others" : names_.several(awaited))
          : fmt::format("{} waiting for {}{}{}",
                        after,
                        names_.several(absent),
                        number(seq),
                        last_words.empty() ? "" : fmt::format("; {}", fmt::join(last_words, "; ")));
  const Blame late{absent, fmt::format("{}'s {}", names_.one(rank_), story), Blame::Kind::kTimeout};
  return fail(late.error(where(op),
                         fmt::format("{}: {}. See {}.", myself(), story, catalogue_section("hang")),
                         context),
              late);
}

std::exception_ptr PeerWatch::mismatched(const std::string& op,
                                         int64_t seq,
                                         const std::string& reason,
                                         bool within_a_part) {
  const std::lock_guard lock(explain_mutex_);
  if (cause_ != nullptr) {
    return cause_;
  }
  if (within_a_part) {  // which knows its steps; our notes know what was called
    try {
      const Findings found = inquire(op, seq, {});
      if (found.blame && found.blame->kind == Blame::Kind::kMismatch) {
        return fail_as_others(op, seq, *found.blame);
      }
      if (!found.disagreement.empty()) {
        return fail_by_mismatch(op, seq, found.disagreement);
      }
    } catch (const Error& e) {
      return store_is_gone(op, seq, e.what());
    }
  }
  return fail_by_mismatch(op, seq, reason);
}

/// Asks the store until it is known who is to blame, who did not come, or who called something
/// else; as long as the patience lasts.
PeerWatch::Findings PeerWatch::inquire(const std::string& op, int64_t seq, Findings found) {
  publish_failure(op, seq);
  const Deadline grace = Deadline::after(options_.patience);
  for (;;) {
    if (const std::optional<Muster> muster = look()) {
      found.blame = find_blame(*muster, -1, false);
      if (seq >= 0) {
        found.absent = absentees(*muster, seq, found.last_words);
        found.disagreement = disagreement_at(seq, *muster);
      }
    }
    if (found.blame || seq < 0 || found.absent.empty() || !found.disagreement.empty() ||
        grace.expired()) {
      return found;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

std::exception_ptr PeerWatch::fail_as_others(const std::string& op,
                                             int64_t seq,
                                             const Blame& blame) {
  return fail(
      blame.error(
          where(op),
          fmt::format("{}: {}; {}{} cannot complete. See {}.",
                      myself(),
                      blame.story,
                      op,
                      number(seq),
                      catalogue_section("transport")),
          {.op = op, .group = options_.group, .rank = rank_, .peers = blame.peers, .seq = seq}),
      blame);
}

std::exception_ptr PeerWatch::fail_by_mismatch(const std::string& op,
                                               int64_t seq,
                                               const std::string& reason) {
  return fail(
      std::make_exception_ptr(CommError(
          where(op),
          fmt::format(
              "{}: {}{}: {}. All ranks must call the same operations in the same order: does one "
              "of them stand inside if (rank == 0)?",
              myself(),
              op,
              number(seq),
              reason),
          {.op = op, .group = options_.group, .rank = rank_, .seq = seq, .mismatch = true})),
      Blame{{},
            fmt::format("{}'s {}{}: {}", names_.one(rank_), op, number(seq), reason),
            Blame::Kind::kMismatch});
}

/// Declares this rank a victim, so that the others look further than at it.
std::exception_ptr PeerWatch::fail(std::exception_ptr cause, const Blame& blame) {
  cause_ = std::move(cause);
  failed_.store(true, std::memory_order_release);
  const std::lock_guard lock(presence_mutex_);
  if (presence_ != nullptr) {
    try {
      presence_->leave(blame.note());
    } catch (const Error&) {
      // The others then find the culprit themselves.
    }
  }
  return cause_;
}

std::exception_ptr PeerWatch::store_is_gone(const std::string& op,
                                            int64_t seq,
                                            const std::string& why) {
  return fail(
      std::make_exception_ptr(CommError(
          where(op),
          fmt::format("{}: {}{} failed, and the store at {} is gone, so who died first is not "
                      "known: the launcher or the rank that hosts it ended ({}).",
                      myself(),
                      op,
                      number(seq),
                      store_->describe(),
                      why),
          {.op = op, .group = options_.group, .rank = rank_, .seq = seq})),
      Blame{});
}

}  // namespace argosy::transport
