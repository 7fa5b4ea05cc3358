#include "argosy/transport/inquest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/rendezvous/stopped_ranks.h"

namespace argosy::transport {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{10};  ///< between two looks at the store
/// How long known_to_have_ended() asks.
constexpr milliseconds kBeforeItHasEnded{200};

/// "300 s", "250 ms"
std::string in_words(milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

std::string where(const Attempt& what) {
  return std::string("transport.") + what.op;
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

/// Returns nullopt when the store is slow. A slow store is not dead; the caller looks again.
std::optional<Inquest::Muster> Inquest::look() const {
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

/// Returns the first lost rank that is not a victim; without one, the rank that a victim blames;
/// without one, if `leavers` are blamed, a rank that left in peace while others still needed it.
/// `peer`: the other end of the link that broke; -1: not known.
std::optional<Blame> Inquest::find_blame(const Muster& muster, int peer, Leavers leavers) const {
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

/// A process that ends closes its connections a moment before the kernel says that it has ended.
bool Inquest::known_to_have_ended(int rank) const {
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

/// Returns the ranks of the group that are stopped, and how. Only a launcher knows.
std::map<int, std::string> Inquest::stopped() const {
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

/// Returns a rank that is gone from the job and was never seen in this group, or that left the job
/// with a reason. `known`: the ranks that were seen here.
std::optional<Blame> Inquest::find_blame_in_job(
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

/// Returns the ranks that are not known to have reached operation `seq`, and what each of them did
/// last. A rank that waits inside an earlier operation is itself stuck, so it is named only when
/// nobody else is absent. A rank that failed, as this one does now, is not absent.
Inquest::Absentees Inquest::absentees(const Muster& muster, int64_t seq) const {
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
  std::map<int, std::string> notes;
  for (const auto& departure : muster.left) {
    notes[rank_of(departure.member)] = departure.note;
  }
  for (const auto& member : muster.present) {
    notes[rank_of(member.name)] = member.note;
  }
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
  const Deadline deadline = Deadline::after(2 * options_.patience);
  for (;;) {
    // A rank that left in peace is blamed at once only when the broken link led to it.
    const std::optional<Muster> muster = look();
    std::optional<Blame> blame =
        muster ? find_blame(*muster, peer, peer >= 0 ? Leavers::kBlamed : Leavers::kExcused)
               : std::nullopt;
    if (blame) {
      return blame;
    }
    if (deadline.expired()) {
      return muster ? find_blame(*muster, -1, Leavers::kBlamed) : std::nullopt;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Inquest::Verdict Inquest::link_broken(const Attempt& what, const LinkBroken& broken) const {
  const int peer = what.peer >= 0 ? what.peer : broken.peer;
  std::optional<Blame> blame;
  try {
    blame = who_broke_the_link(peer);
  } catch (const Error& e) {
    return store_is_gone(what, e.what());
  }
  if (!blame) {
    const std::string to = peer < 0 ? "a rank" : names_.one(peer);
    blame = Blame{peer < 0 ? std::vector<int>{} : std::vector<int>{peer},
                  fmt::format("the connection to {} broke although {} is alive", to, to)};
  }
  CommContext context = context_of(what);
  context.peers = blame->peers;
  context.mismatch = blame->kind == Blame::Kind::kMismatch;
  const CommError error(where(what),
                        fmt::format("{}: {}; {}{} cannot complete ({}). See {}.",
                                    myself(),
                                    blame->story,
                                    what.op,
                                    number(what.seq),
                                    broken.reason,
                                    catalogue_section("transport")),
                        context);
  return {std::make_exception_ptr(error), *std::move(blame)};
}

Inquest::Verdict Inquest::timed_out(const Attempt& what,
                                    const LinkTimeout& late,
                                    const Progress& mine) const {
  const std::vector<int> awaited = what.peer >= 0 ? std::vector{what.peer} : late.awaited;
  Findings found;
  try {
    found = inquire(what, {.absent = {.ranks = awaited}}, mine);
  } catch (const Error& e) {
    return store_is_gone(what, e.what());
  }
  if (found.blame) {
    return as_others_say(what, *found.blame);
  }
  if (!found.disagreement.empty()) {
    return by_mismatch(what, found.disagreement);
  }
  if (const std::map<int, std::string> not_running = stopped(); !not_running.empty()) {
    found.absent = {};
    for (const auto& [rank, how] : not_running) {
      found.absent.ranks.push_back(rank);
      found.absent.last_words.push_back(
          fmt::format("{} does not answer: it is {}", names_.one(rank), how));
    }
  }
  return by_timeout(what, awaited, std::move(found.absent));
}

Inquest::Verdict Inquest::mismatched(const Attempt& what,
                                     const Mismatch& mismatch,
                                     const Progress& mine) const {
  if (mismatch.scope == Mismatch::Scope::kPart) {
    try {
      const Findings found = inquire(what, {}, mine);
      if (found.blame && found.blame->kind == Blame::Kind::kMismatch) {
        return as_others_say(what, *found.blame);
      }
      if (!found.disagreement.empty()) {
        return by_mismatch(what, found.disagreement);
      }
    } catch (const Error& e) {
      return store_is_gone(what, e.what());
    }
  }
  return by_mismatch(what, mismatch.reason);
}

/// Asks the store until it is known who is to blame, who did not come, or who called something
/// else, but no longer than the patience lasts. `found`: what is known already.
Inquest::Findings Inquest::inquire(const Attempt& what,
                                   Findings found,
                                   const Progress& mine) const {
  const Deadline grace = Deadline::after(options_.patience);
  for (;;) {
    if (const std::optional<Muster> muster = look()) {
      found.blame = find_blame(*muster, -1, Leavers::kExcused);
      if (what.seq >= 0) {
        found.absent = absentees(*muster, what.seq);
        found.disagreement = disagreement_at(what.seq, *muster, mine);
      }
    }
    if (found.blame || what.seq < 0 || found.absent.ranks.empty() || !found.disagreement.empty() ||
        grace.expired()) {
      return found;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Inquest::Verdict Inquest::as_others_say(const Attempt& what, const Blame& blame) const {
  CommContext context = context_of(what);
  context.peers = blame.peers;
  return {blame.error(where(what),
                      fmt::format("{}: {}; {}{} cannot complete. See {}.",
                                  myself(),
                                  blame.story,
                                  what.op,
                                  number(what.seq),
                                  catalogue_section("transport")),
                      context),
          blame};
}

Inquest::Verdict Inquest::by_mismatch(const Attempt& what, const std::string& reason) const {
  CommContext context = context_of(what);
  context.mismatch = true;
  const std::string story = fmt::format("{}{}: {}", what.op, number(what.seq), reason);
  return {std::make_exception_ptr(CommError(
              where(what),
              fmt::format("{}: {}. All ranks must call the same operations in the same order: does "
                          "one of them stand inside if (rank == 0)?",
                          myself(),
                          story),
              context)),
          {{}, fmt::format("{}'s {}", names_.one(rank_), story), Blame::Kind::kMismatch}};
}

/// `awaited`: the ranks whose data is missing. `absent`: those that did not come to the operation;
/// without ranks when all came.
Inquest::Verdict Inquest::by_timeout(const Attempt& what,
                                     const std::vector<int>& awaited,
                                     Absentees absent) const {
  const std::string after = fmt::format("{} timed out after {}", what.op, in_words(what.timeout));
  const std::string words = fmt::format("{}", fmt::join(absent.last_words, "; "));
  const std::string story =
      absent.ranks.empty()
          ? fmt::format(
                "{}{}: every rank has reached it, but the data of {} did not arrive; the "
                "ranks may have called it with different sizes (ARGOSY_CHECKED=1 tells), or the "
                "network is stuck",
                after,
                number(what.seq),
                awaited.empty() ? "others" : names_.several(awaited))
          : fmt::format("{} waiting for {}{}{}",
                        after,
                        names_.several(absent.ranks),
                        number(what.seq),
                        words.empty() ? "" : "; " + words);
  CommContext context = context_of(what);
  context.peers = absent.ranks;
  const Blame late{std::move(absent.ranks),
                   fmt::format("{}'s {}", names_.one(rank_), story),
                   Blame::Kind::kTimeout};
  return {late.error(where(what),
                     fmt::format("{}: {}. See {}.", myself(), story, catalogue_section("hang")),
                     context),
          late};
}

Inquest::Verdict Inquest::store_is_gone(const Attempt& what, const std::string& why) const {
  return {std::make_exception_ptr(own_error(
              what,
              fmt::format("{}{} failed, and the store at {} is gone, so who died first is not "
                          "known: the launcher or the rank that hosts it ended ({}).",
                          what.op,
                          number(what.seq),
                          store_->describe(),
                          why))),
          {}};
}

CommError Inquest::own_error(const Attempt& what, const std::string& story) const {
  return {where(what), fmt::format("{}: {}", myself(), story), context_of(what)};
}

std::string Inquest::myself() const {
  std::string text = fmt::format("rank {}/{}{}", rank_, size_, names_.suffix(rank_));
  if (!options_.group.empty()) {
    text += fmt::format(" group \"{}\"", options_.group);
  }
  return text + fmt::format(" ({})", options_.transport);
}

}  // namespace argosy::transport
