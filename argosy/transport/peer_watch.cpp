#include "argosy/transport/peer_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kTick{100};           ///< a state that lasts this long is published
constexpr milliseconds kPublishEvery{1000};  ///< and a state that changes all the time, this often
constexpr milliseconds kSuspicion{1000};     ///< an operation this old asks the store who is gone
constexpr milliseconds kPoll{10};
constexpr std::string_view kMember = "rank/";
constexpr std::string_view kVictim = "victim ";
constexpr std::array<std::string_view, 3> kKinds{"", "timeout ", "mismatch "};  ///< of Blame

std::string member_name(int rank) {
  return fmt::format("{}{}", kMember, rank);
}

int rank_of(const std::string& member) {
  const auto number = strings::parse_int(std::string_view(member).substr(kMember.size()));
  return number ? static_cast<int>(*number) : -1;
}

bool is_victim(const std::string& note) {
  return note.starts_with(kVictim);
}

std::string in_words(const std::string& note) {
  const auto progress = Progress::decode(note);
  if (!progress || progress->seq == 0) {
    return "it had not started any operation";
  }
  return progress->inside
             ? fmt::format("it was last seen in {} (seq {})", progress->op, progress->seq)
             : fmt::format("it last completed {} (seq {})", progress->op, progress->seq);
}

std::string number(int64_t seq) {
  return seq < 0 ? "" : fmt::format(" (seq {})", seq);
}

}  // namespace

/// Who is to blame, and how it ended. A victim leaves it behind as its last note:
/// "victim 3,5 | rank 3 died", "victim timeout 5 | rank 0's barrier timed out …" or
/// "victim mismatch  | rank 0's all_to_all: rank 1 sends 4 B, …".
struct PeerWatch::Blame {
  std::vector<int> peers{};
  std::string story{};
  enum class Kind {
    kGone,      ///< they died or left
    kTimeout,   ///< they did not come in time; nobody is known to be dead
    kMismatch,  ///< the ranks called an operation differently; nobody in particular is to blame
  };
  Kind kind = Kind::kGone;

  [[nodiscard]] std::string note() const {
    return fmt::format(
        "{}{}{} | {}", kVictim, kKinds.at(static_cast<size_t>(kind)), fmt::join(peers, ","), story);
  }

  [[nodiscard]] static std::optional<Blame> parse(std::string_view note) {
    const size_t bar = note.find(" | ");
    if (!note.starts_with(kVictim) || bar == std::string_view::npos) {
      return std::nullopt;
    }
    Blame blame;
    blame.story = note.substr(bar + 3);
    note = note.substr(kVictim.size(), bar - kVictim.size());
    for (const Kind kind : {Kind::kTimeout, Kind::kMismatch}) {
      const std::string_view word = kKinds.at(static_cast<size_t>(kind));
      if (note.starts_with(word)) {
        blame.kind = kind;
        note.remove_prefix(word.size());
      }
    }
    for (const auto& piece : strings::split(note, ',')) {
      if (const auto rank = strings::parse_int(piece)) {
        blame.peers.push_back(static_cast<int>(*rank));
      }
    }
    return blame;
  }

  [[nodiscard]] std::exception_ptr error(const std::string& where,
                                         const std::string& what,
                                         const CommContext& context) const {
    return kind == Kind::kTimeout ? std::make_exception_ptr(TimeoutError(where, what, context))
                                  : std::make_exception_ptr(CommError(where, what, context));
  }
};

std::string Progress::encode() const {
  return fmt::format("{} {} {}", inside ? "in" : "done", seq, op);
}

std::optional<Progress> Progress::decode(const std::string& note) {
  const auto words = strings::split(note, ' ');
  if (words.size() != 3 || (words[0] != "in" && words[0] != "done")) {
    return std::nullopt;
  }
  const auto seq = strings::parse_int(words[1]);
  if (!seq) {
    return std::nullopt;
  }
  return Progress{words[0] == "in", *seq, words[2]};
}

PeerWatch::PeerWatch(std::shared_ptr<rendezvous::Store> store,
                     int rank,
                     int size,
                     PeerWatchOptions options,
                     const Deadline& deadline)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      options_(std::move(options)),
      names_(options_.world_ranks),
      presence_(store_->announce(member_name(rank), deadline)),
      since_(Deadline::Clock::now()) {
  thread_ = std::thread([this] { run(); });
}

PeerWatch::~PeerWatch() {
  leave();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

int64_t PeerWatch::begin(const char* op) {
  bool wake = false;
  int64_t seq = 0;
  {
    const std::lock_guard lock(mutex_);
    seq = next_seq_++;
    progress_.inside = true;
    progress_.seq = seq;
    progress_.op = op;
    since_ = Deadline::Clock::now();
    wake = std::exchange(asleep_, false);
  }
  if (wake) {
    changed_.notify_all();
  }
  return seq;
}

void PeerWatch::end() {
  const std::lock_guard lock(mutex_);
  progress_.inside = false;
  since_ = Deadline::Clock::now();
}

PeerWatch::Message PeerWatch::begin_message() {
  bool wake = false;
  Message message;
  {
    const std::lock_guard lock(mutex_);
    message = messages_.insert(Deadline::Clock::now());
    wake = std::exchange(asleep_, false);
  }
  if (wake) {
    changed_.notify_all();
  }
  return message;
}

void PeerWatch::end_message(Message message) {
  const std::lock_guard lock(mutex_);
  messages_.erase(message);
}

void PeerWatch::check(const char* op) {
  if (failed_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(explain_mutex_);
    std::rethrow_exception(cause_);
  }
  if (left_.load(std::memory_order_acquire)) {
    throw CommError(where(op),
                    fmt::format("{}: the transport was closed. No operation may follow.", myself()),
                    {.op = op, .group = options_.group, .rank = rank_});
  }
}

/// Publishes what this rank does when that lasts, and looks for the dead when it lasts long.
void PeerWatch::run() {
  std::string published;
  auto published_at = Deadline::Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto age = Deadline::Clock::now() - since_;
    const std::string text = progress_.encode();
    const auto now = Deadline::Clock::now();
    if (text != published && (age >= kTick || now - published_at >= kPublishEvery)) {
      const Progress progress = progress_;
      published = text;
      published_at = now;
      lock.unlock();
      publish(progress);
      lock.lock();
      continue;
    }
    if (text == published && !progress_.inside && messages_.empty()) {
      asleep_ = true;
      changed_.wait(lock, [&] { return stop_ || !asleep_; });
      continue;
    }
    const bool old_message = !messages_.empty() && now - *messages_.begin() >= kSuspicion;
    if ((progress_.inside && age >= kSuspicion) || old_message) {
      const auto since = since_;
      const auto oldest = old_message ? *messages_.begin() : since;
      lock.unlock();
      const bool gone = someone_is_gone();
      lock.lock();
      const bool still_waits =
          old_message ? messages_.contains(oldest) : progress_.inside && since_ == since;
      if (gone && still_waits && options_.interrupt && !stop_) {
        lock.unlock();
        options_.interrupt();
        lock.lock();
      }
      changed_.wait_for(lock, kSuspicion / 2, [&] { return stop_; });
      continue;
    }
    changed_.wait_for(lock, kTick, [&] { return stop_; });
  }
}

void PeerWatch::publish(const Progress& progress) {
  const std::lock_guard lock(presence_mutex_);
  if (presence_ != nullptr && !left_) {
    try {
      presence_->note(progress.encode());
    } catch (const Error&) {
      // A store that is gone matters only when an operation fails, which then says so.
    }
  }
}

/// Where this rank stands when `op` fails. A message has no number: the others judge this rank by
/// its place among the collectives, which stays what it was.
void PeerWatch::publish_failure(const std::string& op, int64_t seq) {
  Progress progress{true, seq, op};
  if (seq < 0) {
    const std::lock_guard lock(mutex_);
    progress = progress_;
  }
  publish(progress);
}

bool PeerWatch::someone_is_gone() {
  try {
    return find_blame(-1, false).has_value();
  } catch (const Error&) {
    return false;
  }
}

/// The first lost rank that is not a victim; else whom a victim blames; else, if asked for, who
/// left in peace while others still needed it.
std::optional<PeerWatch::Blame> PeerWatch::find_blame(int peer, bool accept_left) {
  std::vector<rendezvous::Departure> departures;
  std::set<std::string> present;
  std::optional<Blame> stranger;
  try {
    const Deadline deadline = Deadline::after(options_.patience);
    departures = store_->departures(std::string(kMember), deadline);
    if (departures.empty() && options_.job == nullptr) {
      return std::nullopt;
    }
    for (const auto& member : store_->members(std::string(kMember), deadline)) {
      present.insert(member.name);
    }
    std::set<int> known{rank_};
    for (const auto& name : present) {
      known.insert(rank_of(name));
    }
    for (const auto& departure : departures) {
      known.insert(rank_of(departure.member));
    }
    stranger = find_blame_in_job(known, deadline);
  } catch (const TimeoutError&) {
    return std::nullopt;  // a slow store is not a dead one: the caller looks again
  }
  const rendezvous::Departure* victim = nullptr;
  const rendezvous::Departure* left = nullptr;
  for (const auto& departure : departures) {
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
      return Blame{{rank},
                   fmt::format("{} died (its process ended without leaving the group; {})",
                               names_.one(rank),
                               in_words(departure.note))};
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

/// A rank of the job that is gone and was never seen in this group, or left the job with a reason.
/// `known`: who was seen here.
std::optional<PeerWatch::Blame> PeerWatch::find_blame_in_job(const std::set<int>& known,
                                                             const Deadline& deadline) const {
  if (options_.job == nullptr) {
    return std::nullopt;
  }
  for (const auto& departure : options_.job->departures(std::string(kMember), deadline)) {
    const int rank = names_.from_world(rank_of(departure.member), size_);
    const bool stranger = rank >= 0 && !known.contains(rank);
    if (stranger && departure.lost) {
      return Blame{
          {rank},
          fmt::format("{} died (its process ended before it came to the group)", names_.one(rank))};
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
/// absent who does not wait.
std::vector<int> PeerWatch::absentees(int64_t seq, std::vector<std::string>& last_words) {
  std::vector<std::string> notes(static_cast<size_t>(size_), "?");
  for (const auto& member :
       store_->members(std::string(kMember), Deadline::after(options_.patience))) {
    const int rank = rank_of(member.name);
    if (rank >= 0 && rank < size_) {
      notes[static_cast<size_t>(rank)] = member.note;
    }
  }
  std::vector<int> absent, stuck;
  for (int rank = 0; rank < size_; ++rank) {
    const std::string& note = notes[static_cast<size_t>(rank)];
    const auto progress = Progress::decode(note);
    const bool arrived = note != "?" && (seq == 0 || (progress && progress->seq >= seq));
    if (rank != rank_ && !arrived) {
      (progress && progress->inside && progress->seq > 0 ? stuck : absent).push_back(rank);
    }
  }
  if (absent.empty()) {
    absent = std::move(stuck);
  }
  last_words.clear();
  for (const int rank : absent) {
    const std::string& note = notes[static_cast<size_t>(rank)];
    last_words.push_back(fmt::format(
        "{}: {}", names_.one(rank), note == "?" ? "it never joined the group" : in_words(note)));
  }
  return absent;
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
  std::optional<Blame> blame;
  try {
    publish_failure(op, seq);
    while (!blame) {
      // Who left in peace is blamed at once only when the broken link led to it.
      blame = find_blame(peer, peer >= 0);
      if (blame || deadline.expired()) {
        break;
      }
      std::this_thread::sleep_for(kPoll);
    }
    if (!blame) {
      blame = find_blame(-1, true);
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
  return fail(std::make_exception_ptr(CommError(where(op),
                                                fmt::format("{}: {}; {}{} cannot complete ({}). "
                                                            "See docs/guides/errors.md#transport.",
                                                            myself(),
                                                            blame->story,
                                                            op,
                                                            number(seq),
                                                            reason),
                                                known)),
              *blame);
}

std::exception_ptr PeerWatch::timed_out(const std::string& op,
                                        int64_t seq,
                                        milliseconds timeout,
                                        const std::vector<int>& awaited) {
  const std::lock_guard lock(explain_mutex_);
  if (cause_ != nullptr) {
    return cause_;
  }
  std::vector<int> absent = awaited;
  std::vector<std::string> last_words;
  std::optional<Blame> blame;
  try {
    publish_failure(op, seq);
    const Deadline grace = Deadline::after(options_.patience);
    for (;;) {
      blame = find_blame(-1, false);
      try {
        absent = seq >= 0 ? absentees(seq, last_words) : absent;
      } catch (const TimeoutError&) {  // a slow store is not a dead one: look again
      }
      if (blame || seq < 0 || absent.empty() || grace.expired()) {
        break;
      }
      std::this_thread::sleep_for(kPoll);
    }
  } catch (const Error& e) {
    return store_is_gone(op, seq, e.what());
  }
  CommContext context{.op = op, .group = options_.group, .rank = rank_, .seq = seq};
  if (blame) {
    context.peers = blame->peers;
    return fail(
        blame->error(
            where(op),
            fmt::format("{}: {}; {}{} cannot complete. See docs/guides/errors.md#transport.",
                        myself(),
                        blame->story,
                        op,
                        number(seq)),
            context),
        *blame);
  }
  context.peers = absent;
  const std::string after = fmt::format("{} timed out after {} ms", op, timeout.count());
  const std::string story =
      absent.empty()
          ? fmt::format(
                "{}{}: every rank has reached it, but the data of {} did not arrive; the "
                "ranks may have called it with different sizes, or the network is stuck",
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
                         fmt::format("{}: {}. See docs/guides/errors.md#hang.", myself(), story),
                         context),
              late);
}

std::exception_ptr PeerWatch::mismatched(const std::string& op,
                                         int64_t seq,
                                         const std::string& reason) {
  const std::lock_guard lock(explain_mutex_);
  if (cause_ != nullptr) {
    return cause_;
  }
  return fail(
      std::make_exception_ptr(CommError(
          where(op),
          fmt::format("{}: {}{}: {}. All ranks must call the same operations in the same order.",
                      myself(),
                      op,
                      number(seq),
                      reason),
          {.op = op, .group = options_.group, .rank = rank_, .seq = seq})),
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

void PeerWatch::leave() {
  if (left_.exchange(true)) {
    return;
  }
  Progress progress;
  {
    const std::lock_guard lock(mutex_);
    progress = progress_;
  }
  const std::lock_guard lock(presence_mutex_);
  if (presence_ != nullptr && !failed_) {
    try {
      presence_->leave(progress.encode());
    } catch (const Error&) {
      // Leaving is a courtesy; a store that is gone needs none.
    }
  }
}

std::unique_ptr<rendezvous::Presence> PeerWatch::take_presence() {
  const std::lock_guard lock(presence_mutex_);
  return std::move(presence_);
}

std::string PeerWatch::where(const std::string& op) const {
  return "transport." + op;
}

std::string PeerWatch::myself() const {
  std::string text = fmt::format("rank {}/{}{}", rank_, size_, names_.suffix(rank_));
  if (!options_.group.empty()) {
    text += fmt::format(" group \"{}\"", options_.group);
  }
  return text + fmt::format(" ({})", options_.transport);
}

}  // namespace argosy::transport
