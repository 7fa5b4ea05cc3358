#include "argosy/transport/inquest.h"

#include <fmt/format.h>

#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "argosy/rendezvous/stopped_ranks.h"
#include "argosy/transport/farewell.h"

namespace argosy::transport {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{10};  ///< between two looks at the store
/// How long known_to_have_ended() asks.
constexpr milliseconds kBeforeItHasEnded{200};

/// Looks until `look()` returns true, at least once. Returns false when the deadline passed first.
template <typename Look>
bool look_until(const Deadline& deadline, Look look) {
  while (!look()) {
    if (deadline.expired()) {
      return false;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace

bool Inquest::someone_is_gone() const {
  try {
    const std::optional<Muster> muster = look();
    return muster && find_blame(*muster, -1, Leavers::kExcused);
  } catch (const Error&) {
    return false;
  }
}

std::optional<int> Inquest::who_left(int64_t seq, int peer) const {
  try {
    const std::optional<Muster> muster = look();
    for (const auto& departure : muster ? muster->left : std::vector<rendezvous::Departure>()) {
      const int rank = rank_of(departure.member);
      const auto last = Progress::decode(departure.note);
      // One that left inside of a collective has not done its part of that.
      const bool too_early =
          peer >= 0 ? rank == peer : last && last->seq < (last->inside ? seq + 1 : seq);
      if (rank != rank_ && !departure.lost && !is_victim(departure.note) && too_early) {
        return rank;
      }
    }
  } catch (const Error&) {  // a store that is slow or gone says nothing about them
  }
  return std::nullopt;
}

/// Returns the first lost rank that is not a victim; without one, the rank that a victim blames;
/// without one, if `leavers` are blamed, a rank that left in peace while others still needed it.
/// `peer`: the other end of the link that broke; -1: not known.
std::optional<Blame> Inquest::find_blame(const Muster& muster, int peer, Leavers leavers) const {
  const rendezvous::Departure* victim = nullptr;
  const rendezvous::Departure* left = nullptr;
  for (const auto& departure : muster.left) {
    const int rank = rank_of(departure.member);
    if (rank == rank_) {
      continue;
    }
    if (is_victim(departure.note)) {
      victim = victim == nullptr ? &departure : victim;
    } else if (departure.lost) {
      if (left != nullptr && peer >= 0) {
        break;  // the broken link led to one that had left before
      }
      return Blame{{rank}, story_of_lost(rank, in_words(departure.note))};
    } else if (leavers == Leavers::kBlamed && left == nullptr && (peer < 0 || rank == peer)) {
      left = &departure;
    }
  }
  if (victim != nullptr) {
    auto blame = Blame::parse(victim->note);
    if (blame && (blame->kind == Blame::Kind::kMismatch || !blame->peers.empty())) {
      return blame;
    }
  }
  if (std::optional<Blame> stranger = find_blame_in_job(muster)) {
    return stranger;
  }
  if (left != nullptr) {
    const int rank = rank_of(left->member);
    if (auto farewell = farewell_of(*store_, rank, Deadline::after(options_.patience))) {
      return Blame{std::move(farewell->culprits),
                   fmt::format("{} left the group, for another of its groups broke: {}",
                               names_.one(rank),
                               farewell->story)};
    }
    return Blame{
        {rank},
        fmt::format("{} left the group while others still needed it ({}): did it have fewer "
                    "batches (see join()), or is their call inside if (rank == 0)?",
                    names_.one(rank),
                    in_words(left->note))};
  }
  return std::nullopt;
}

/// Says why the store lost a rank. The connection of a rank ends with its process, and also when
/// the rank is silent for long: it is stopped or cut off, or its machine lost its power.
/// `last_seen`: what the rank did.
std::string Inquest::story_of_lost(int rank, const std::string& last_seen) const {
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

/// Returns the world rank of a member of the job's store.
int Inquest::world_rank_in_job(const std::string& member) const {
  const int number = rank_of(member);
  const auto i = static_cast<size_t>(number);
  return number >= 0 && i < options_.job_ranks.size() ? options_.job_ranks[i] : number;
}

/// A process that ends closes its connections a moment before the kernel says that it has ended.
bool Inquest::known_to_have_ended(int rank) const {
  return options_.has_ended &&
         look_until(Deadline::after(kBeforeItHasEnded), [&] { return options_.has_ended(rank); });
}

/// Returns the ranks of the job that are stopped, and how. Only a launcher knows.
std::map<int, std::string> Inquest::stopped_in_job() const {
  if (options_.job == nullptr) {
    return {};
  }
  try {
    return rendezvous::stopped_ranks(*options_.job, Deadline::after(options_.patience));
  } catch (const Error&) {  // a store that is slow or gone says nothing about them
    return {};
  }
}

/// Returns those of the group.
std::map<int, std::string> Inquest::stopped() const {
  std::map<int, std::string> found;
  for (const auto& [world_rank, how] : stopped_in_job()) {
    const int rank = names_.from_world(world_rank, size_);
    if (rank >= 0) {
      found[rank] = how;
    }
  }
  return found;
}

/// Says which rank of the job is stopped or gone that is no member of this group: a rank that is
/// missed here may wait for it in another group. Empty: none.
std::string Inquest::trouble_elsewhere(const Muster& muster) const {
  for (const auto& [world_rank, how] : stopped_in_job()) {
    if (names_.from_world(world_rank, size_) < 0) {
      return fmt::format("world rank {} does not answer: it is {}", world_rank, how);
    }
  }
  for (const auto& departure : muster.left_job) {
    const int world_rank = world_rank_in_job(departure.member);
    if (departure.lost && names_.from_world(world_rank, size_) < 0) {
      return fmt::format(
          "world rank {} is gone (its process ended without leaving the job, or does not answer)",
          world_rank);
    }
  }
  return {};
}

/// Returns a rank that is gone from the job and was never seen in this group, or that left the job
/// with a reason.
std::optional<Blame> Inquest::find_blame_in_job(const Muster& muster) const {
  const std::map<int, std::string> known = muster.notes();
  for (const auto& departure : muster.left_job) {
    const int rank = names_.from_world(world_rank_in_job(departure.member), size_);
    const bool stranger = rank >= 0 && rank != rank_ && !known.contains(rank);
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

/// Returns the ranks that are not known to have reached operation `seq`, and what each of them did
/// last. A rank that waits inside an earlier operation is itself stuck, so it is named only when
/// nobody else is absent. A rank that failed, as this one does now, is not absent.
Absentees Inquest::absentees(const Muster& muster, int64_t seq) const {
  const std::map<int, std::string> notes = muster.notes();
  const std::set<int> left = muster.leavers();
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
  Absentees found{.ranks = std::move(absent)};
  for (const int rank : found.ranks) {
    const auto note = notes.find(rank);
    found.last_words.push_back(
        fmt::format("{}: {}{}",
                    names_.one(rank),
                    left.contains(rank) ? "it left the group; " : "",
                    note == notes.end() ? "it never joined the group" : in_words(note->second)));
  }
  return found;
}

/// Says how another rank called collective `seq`, or the one before it; empty when all ranks called
/// the same.
std::string Inquest::disagreement_at(int64_t seq,
                                     const Muster& muster,
                                     const Progress& mine) const {
  const std::map<int, std::string> notes = muster.notes();
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

/// Returns nullopt when every rank is alive. Searches longer than timed_out() does: where a
/// deadline broke the connection at the other end, that rank is still finding out whom it waited
/// for.
std::optional<Blame> Inquest::who_broke_the_link(int peer) const {
  // A rank that left in peace is blamed at once only when the broken link led to it.
  const Leavers leavers = peer >= 0 ? Leavers::kBlamed : Leavers::kExcused;
  std::optional<Muster> muster;
  std::optional<Blame> blame;
  const bool known = look_until(Deadline::after(2 * options_.patience), [&] {
    muster = look();
    blame = muster ? find_blame(*muster, peer, leavers) : std::nullopt;
    return blame.has_value();
  });
  if (!known && muster) {
    blame = find_blame(*muster, -1, Leavers::kBlamed);
    return blame ? blame : who_gave_up(*muster);
  }
  return blame;
}

/// Returns the last words of a rank that waited too long for no rank in particular: every rank had
/// come, but data did not. That broke its links.
std::optional<Blame> Inquest::who_gave_up(const Muster& muster) const {
  for (const auto& departure : muster.left) {
    std::optional<Blame> blame = Blame::parse(departure.note);
    if (blame && blame->kind == Blame::Kind::kTimeout && rank_of(departure.member) != rank_) {
      return blame;
    }
  }
  return std::nullopt;
}

Verdict Inquest::link_broken(const Attempt& what, const LinkBroken& broken) const {
  const int peer = what.peer >= 0 ? what.peer : broken.peer;
  std::optional<Blame> blame;
  try {
    blame = who_broke_the_link(peer);
  } catch (const Error& e) {
    return store_is_gone(what, e);
  }
  if (!blame && peer < 0) {  // so it is this rank that cannot go on, and the others hear it
    return verdict_.by_own_fault(what, broken.reason);
  }
  if (!blame) {
    const std::string to = names_.one(peer);
    blame = Blame{{peer}, fmt::format("the connection to {} broke although {} is alive", to, to)};
  }
  return verdict_.by_broken_link(what, *std::move(blame), broken.reason);
}

Verdict Inquest::timed_out(const Attempt& what,
                           const LinkTimeout& late,
                           const Progress& mine) const {
  const std::vector<int> awaited = what.peer >= 0 ? std::vector{what.peer} : late.awaited;
  Findings found;
  try {
    found = inquire(what, {.absent = {.ranks = awaited}}, mine);
  } catch (const Error& e) {
    return store_is_gone(what, e);
  }
  if (found.blame) {
    return verdict_.by_blame(what, *found.blame);
  }
  if (!found.disagreement.empty()) {
    return verdict_.by_mismatch(what, found.disagreement);
  }
  if (const std::map<int, std::string> not_running = stopped(); !not_running.empty()) {
    found.absent = {};
    for (const auto& [rank, how] : not_running) {
      found.absent.ranks.push_back(rank);
      found.absent.last_words.push_back(
          fmt::format("{} does not answer: it is {}", names_.one(rank), how));
    }
  } else if (const auto muster = look(); muster && !found.absent.ranks.empty()) {
    if (const std::string cause = trouble_elsewhere(*muster); !cause.empty()) {
      found.absent.cause = fmt::format("{}, and they may wait for it in another group", cause);
    }
  }
  return verdict_.by_timeout(what, awaited, std::move(found.absent));
}

Verdict Inquest::mismatched(const Attempt& what,
                            const Mismatch& mismatch,
                            const Progress& mine) const {
  if (mismatch.scope == Mismatch::Scope::kPart) {
    try {
      const Findings found = inquire(what, {}, mine);
      if (found.blame && found.blame->kind == Blame::Kind::kMismatch) {
        return verdict_.by_blame(what, *found.blame);
      }
      if (!found.disagreement.empty()) {
        return verdict_.by_mismatch(what, found.disagreement);
      }
    } catch (const Error& e) {
      return store_is_gone(what, e);
    }
  }
  return verdict_.by_mismatch(what, mismatch.reason);
}

/// Asks the store until it is known who is to blame, who did not come, or who called something
/// else, but no longer than the patience lasts. `found`: what is known already.
Inquest::Findings Inquest::inquire(const Attempt& what,
                                   Findings found,
                                   const Progress& mine) const {
  (void)look_until(Deadline::after(options_.patience), [&] {
    if (const std::optional<Muster> muster = look()) {
      found.blame = find_blame(*muster, -1, Leavers::kExcused);
      if (what.seq >= 0) {
        found.absent = absentees(*muster, what.seq);
        found.disagreement = disagreement_at(what.seq, *muster, mine);
      }
    }
    return found.blame || what.seq < 0 || found.absent.ranks.empty() || !found.disagreement.empty();
  });
  return found;
}

Verdict Inquest::store_is_gone(const Attempt& what, const Error& why) const {
  const int host = names_.from_world(store_->host_rank(), size_);
  if (host >= 0 && host != rank_) {
    return verdict_.by_blame(
        what,
        {{host},
         fmt::format("{} is gone (its process ended, or does not answer), and with it the store "
                     "that it hosts, {} ({})",
                     names_.one(host),
                     store_->describe(),
                     why.what())});
  }
  return {std::make_exception_ptr(own_error(
              what,
              fmt::format("{}{} failed, and the store at {} is gone, so who died first is not "
                          "known: the launcher or the rank that hosts it ended ({}).",
                          what.op,
                          number(what.seq),
                          store_->describe(),
                          why.what()))),
          {}};
}

}  // namespace argosy::transport
