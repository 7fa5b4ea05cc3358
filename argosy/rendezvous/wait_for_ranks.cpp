#include "argosy/rendezvous/wait_for_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/addresses.h"
#include "argosy/rendezvous/limits.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kFailed = "join/failed";     ///< why nobody should wait any longer
constexpr std::string_view kGaveUp = "gave up: ";  ///< how a rank's goodbye begins at its deadline
constexpr seconds kBetweenWarnings{10};
constexpr seconds kDeathNotice{5};

std::string card_key(int rank) {
  return fmt::format("join/{}", rank);
}

/// What a rank says of itself when it registers.
struct Card {
  std::string host{};
  std::string pid{};
  std::string world_size{};
  std::string run_id{};

  [[nodiscard]] std::string to_text() const {
    return fmt::format("{}\n{}\n{}\n{}", host, pid, world_size, run_id);
  }
  static Card from_text(const std::string& text) {
    std::vector<std::string> lines = strings::split(text, '\n');
    lines.resize(4);
    return {lines[0], lines[1], lines[2], lines[3]};
  }
  [[nodiscard]] std::string who() const {
    return pid.empty() ? "an unknown process" : fmt::format("host {} pid {}", host, pid);
  }
};

Card own_card(int world_size, const std::string& run_id) {
  return {os::host_name(), std::to_string(getpid()), std::to_string(world_size), run_id};
}

class Registration {
 public:
  Registration(Store& store,
               int rank,
               int world_size,
               const std::string& run_id,
               const Deadline& deadline,
               DeadRank dead)
      : store_(store),
        rank_(rank),
        world_size_(world_size),
        card_(own_card(world_size, run_id)),
        deadline_(deadline),
        dead_(dead) {}

  std::unique_ptr<Presence> run() {
    if (dead_ == DeadRank::kMayBeReplaced && all_have_met()) {
      await_departure();
    } else {
      refuse_former_life();
    }
    std::unique_ptr<Presence> presence = announce();
    try {
      store_.set(card_key(rank_), card_.to_text(), deadline_);
      wait_for_all();
      compare_with_rank_zero();
      return presence;
    } catch (const TimeoutError& error) {
      presence->leave(fmt::format("{}{}", kGaveUp, error.what()));
      throw;
    } catch (const Error& error) {
      presence->leave(error.what());  // the others, who wait for us, repeat it
      throw;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw RendezvousError("rendezvous.join", what);
  }

  // Of a rank that may have died before it wrote its card.
  Card card_of(int rank) const {
    try {
      return Card::from_text(
          store_.get(card_key(rank), deadline_.sooner(Deadline::after(milliseconds(200)))));
    } catch (const TimeoutError&) {
      return {};
    }
  }

  static int rank_of(const std::string& member) {
    return static_cast<int>(
        strings::parse_int(std::string_view(member).substr(std::string_view("rank/").size()))
            .value_or(-1));
  }

  [[noreturn]] void fail_for(const Departure& gone) const {
    const int rank = rank_of(gone.member);
    const Card card = card_of(rank);
    compare(rank, card);
    fail(fmt::format(
        "rank {} ({}) {} before all {} ranks had met{}. See its log; or {} is left over "
        "from a former run: then delete it or give this run a new one.",
        rank,
        card.who(),
        gone.lost ? "lost its connection to the store" : "left",
        world_size_,
        gone.note.empty() ? "" : fmt::format(" (it said: {})", gone.note),
        store_.describe()));
  }

  bool all_have_met() const {
    std::vector<std::string> keys;
    for (int rank = 0; rank < world_size_; ++rank) {
      keys.push_back(card_key(rank));
    }
    return store_.check(keys, deadline_);
  }

  // The store may learn a moment later than we began that the process before us is gone.
  void await_departure() const {
    const std::string member = fmt::format("rank/{}", rank_);
    const Deadline until = deadline_.sooner(Deadline::after(kDeathNotice));
    const auto is_present = [&] {
      return std::ranges::count(store_.members(member, deadline_), member, &Member::name) > 0;
    };
    while (is_present() && !until.expired()) {
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  // Nobody can have met while this rank was absent: a departure is of a rank that failed early or,
  // in a folder that nobody deleted, of a former run.
  void refuse_former_life() const {
    const std::vector<Departure> gone = store_.departures("rank/", deadline_);
    if (!gone.empty()) {
      fail_for(gone.front());
    }
  }

  std::unique_ptr<Presence> announce() const {
    const std::string member = fmt::format("rank/{}", rank_);
    for (const Member& other : store_.members(member, deadline_)) {
      if (other.name == member) {
        refuse_double();
      }
    }
    try {
      return store_.announce(member, deadline_);
    } catch (const RendezvousError&) {
      for (const Member& other : store_.members(member, deadline_)) {
        if (other.name == member) {  // it came between the look and the announcement
          refuse_double();
        }
      }
      throw;
    }
  }

  // Tells the others too: who of them belongs to which job, nobody can know.
  [[noreturn]] void refuse_double() const {
    const std::string what = fmt::format(
        "rank {} is taken by {}, and {} claims it too. Two processes have the same "
        "rank, or two jobs meet at {}: give each process its rank and each job a place "
        "of its own.",
        rank_,
        card_of(rank_).who(),
        card_.who(),
        store_.describe());
    store_.set(kFailed, what, deadline_);
    fail(what);
  }

  std::vector<int> missing_ranks() const {
    std::set<int> came;
    for (const std::string& key : store_.keys("join/", Deadline::after(seconds(10)))) {
      if (key == kFailed) {
        fail(store_.get(kFailed, Deadline::after(seconds(10))));
      }
      came.insert(static_cast<int>(
          strings::parse_int(key.substr(std::string_view("join/").size())).value_or(-1)));
    }
    if (*came.rbegin() >= world_size_) {
      fail(
          fmt::format("{} says rank {} joined, but this process expects {} ranks only. Start all "
                      "with the same WORLD_SIZE.",
                      store_.describe(),
                      *came.rbegin(),
                      world_size_));
    }
    std::vector<int> missing;
    for (int rank = 0; rank < world_size_; ++rank) {
      if (!came.contains(rank)) {
        missing.push_back(rank);
      }
    }
    return missing;
  }

  // Waits in slices, so that a death or a double is noticed before the deadline; growing ones, so
  // that 512 waiting ranks do not keep the store busy.
  void wait_for_all() const {
    auto next_warning = start_ + kBetweenWarnings;
    milliseconds slice = first_wait_for_ranks(world_size_);
    for (std::vector<int> missing = missing_ranks(); !missing.empty(); missing = missing_ranks()) {
      const std::vector<Departure> gone = store_.departures("rank/", Deadline::after(seconds(10)));
      if (!gone.empty() && missing_ranks().empty()) {
        return;  // all met, and the first has left already
      }
      // A rank whose deadline came a moment earlier is no cause: we miss the same ones.
      const bool gave_up = !gone.empty() && gone.front().note.starts_with(kGaveUp);
      if (!gone.empty() && !gave_up) {
        fail_for(gone.front());
      }
      const std::string state = fmt::format("waiting for {} of {} ranks: {} ({} of {})",
                                            missing.size(),
                                            world_size_,
                                            strings::ranges(missing),
                                            seconds_since(start_),
                                            text::duration(deadline_.at() - start_));
      if (deadline_.expired() || gave_up) {
        throw TimeoutError("rendezvous.join",
                           fmt::format("{}, at {}. See whether they were started, and their logs.",
                                       state,
                                       store_.describe()),
                           {.op = "join", .group = "world", .rank = rank_, .peers = missing});
      }
      if (Deadline::Clock::now() >= next_warning) {
        next_warning += kBetweenWarnings;
        log::warn("[{}] {}", "rendezvous.join", state);
      }
      wait_for(missing, deadline_.sooner(Deadline::after(slice)));
      slice = std::min(slice * 2, kLongestWaitForRanks);
    }
  }

  void wait_for(const std::vector<int>& ranks, const Deadline& until) const {
    std::vector<std::string> keys;
    std::transform(ranks.begin(), ranks.end(), std::back_inserter(keys), card_key);
    try {
      store_.wait(keys, until);
    } catch (const TimeoutError&) {
      // The caller looks who is missing.
    }
  }

  // Each compares itself with one: 512 ranks that read all cards would be 262,144 calls.
  void compare_with_rank_zero() const { compare(0, card_of(0)); }

  void compare(int rank, const Card& other) const {
    if (!other.world_size.empty() && other.world_size != card_.world_size) {
      fail(
          fmt::format("rank {} ({}) expects {} ranks, rank {} ({}) expects {}. Start all with the "
                      "same WORLD_SIZE.",
                      rank,
                      other.who(),
                      other.world_size,
                      rank_,
                      card_.who(),
                      card_.world_size));
    }
    if (other.run_id != card_.run_id && !other.pid.empty()) {
      fail(
          fmt::format("rank {} ({}) is of run \"{}\", rank {} ({}) of run \"{}\": two jobs meet at "
                      "{}. Give each job a place of its own.",
                      rank,
                      other.who(),
                      other.run_id,
                      rank_,
                      card_.who(),
                      card_.run_id,
                      store_.describe()));
    }
  }

  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  Store& store_;
  const int rank_;
  const int world_size_;
  const Card card_;
  const Deadline deadline_;
  const DeadRank dead_;
};

}  // namespace

std::unique_ptr<Presence> wait_for_ranks(Store& store,
                                         int rank,
                                         int world_size,
                                         const Deadline& deadline,
                                         const std::string& run_id,
                                         DeadRank dead) {
  ARGOSY_CHECK(rank >= 0 && rank < world_size,
               "rendezvous.join",
               "expected a rank from 0 to world_size - 1, got rank {} of {}",
               rank,
               world_size);
  return Registration(store, rank, world_size, run_id, deadline, dead).run();
}

}  // namespace argosy::rendezvous
