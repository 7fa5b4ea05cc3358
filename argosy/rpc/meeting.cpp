#include "argosy/rpc/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/host_card.h"
#include "argosy/rendezvous/stopped_ranks.h"

namespace argosy::rpc {
namespace {

using namespace std::chrono_literals;

constexpr auto kSlice = 200ms;      ///< how long a worker waits before it looks whether one is gone
constexpr auto kLookPatience = 2s;  ///< for the answers to that look
constexpr auto kPoll = 10ms;

std::string card_key(int rank) {
  return fmt::format("card/{}", rank);
}
std::string name_key(const std::string& name) {
  return "name/" + name;
}

/// "rank/3" -> 3.
int rank_of_member(const std::string& member) {
  return static_cast<int>(
      strings::parse_int(std::string_view(member).substr(member.find('/') + 1)).value_or(-1));
}

std::string to_text(const rendezvous::HostCard& card) {
  return card.loopback + "\n" + card.address;
}
rendezvous::HostCard host_card(const std::string& text) {
  const std::vector<std::string> lines = strings::split(text, '\n');
  return {lines.front(), lines.size() > 1 ? lines[1] : ""};
}

}  // namespace

Meeting::Meeting(std::shared_ptr<rendezvous::Store> job, int rank, int world_size)
    : job_(std::move(job)),
      store_(rendezvous::prefix_store(job_, "rpc")),
      rank_(rank),
      world_size_(world_size) {}

/// All know two hosts, the first and one that is not the first's. So a thousand workers read two
/// cards and not a million.
std::string Meeting::choose_address(const Deadline& deadline) {
  const rendezvous::HostCard mine{
      rendezvous::loopback_id(), rendezvous::source_address(rendezvous::host_of(job_->describe()))};
  const std::string first = store_->compare_set("host/first", "", to_text(mine), deadline);
  if (host_card(first).loopback != mine.loopback) {
    (void)store_->compare_set("host/other", "", to_text(mine), deadline);
  }
  await_all("host", Gone::kMissed, deadline);
  std::vector<rendezvous::HostCard> others{host_card(first)};
  if (store_->check({"host/other"}, deadline)) {
    others.push_back(host_card(store_->get("host/other", deadline)));
  }
  std::string address = rendezvous::choose_address(mine, others);
  if (address.empty()) {
    throw ConfigError("rpc.listen",
                      "this host has no address but loopback, and workers run on other hosts. Set "
                      "ARGOSY_IFNAME.");
  }
  return address;
}

void Meeting::publish(const wire::Card& card, const Deadline& deadline) {
  const std::string mine = std::to_string(rank_);
  const std::string has = store_->compare_set(name_key(card.name()), "", mine, deadline);
  if (has != mine) {
    throw RendezvousError(
        "rpc.join",
        fmt::format("ranks {} and {} both call themselves \"{}\". Give each worker "
                    "a name of its own.",
                    has,
                    mine,
                    card.name()));
  }
  rejoined_ = store_->check({card_key(rank_)}, deadline);
  store_->set(card_key(rank_), card.SerializeAsString(), deadline);
  await_all("card", Gone::kMissed, deadline);
}

wire::Card Meeting::card(int rank, const Deadline& deadline) {
  ARGOSY_CHECK(rank >= 0 && rank < world_size_,
               "rpc.worker",
               "expected a rank from 0 to {}, got {}",
               world_size_ - 1,
               rank);
  wire::Card card;
  ARGOSY_INVARIANT(card.ParseFromString(store_->get(card_key(rank), deadline)), "rpc.worker");
  return card;
}

int Meeting::rank_of(const std::string& name, const Deadline& deadline) {
  const std::string key = name_key(name);
  if (!name.empty() && store_->check({key}, deadline)) {
    return static_cast<int>(strings::parse_int(store_->get(key, deadline)).value_or(-1));
  }
  std::vector<std::string> names = store_->keys("name/", deadline);
  for (std::string& one : names) {
    one = one.substr(one.find('/') + 1);
  }
  const std::optional<std::string> close = strings::closest(name, names);
  constexpr size_t kMost = 16;
  const bool more = names.size() > kMost;
  names.resize(std::min(names.size(), kMost));
  throw UsageError("rpc.worker",
                   fmt::format("there is no worker \"{}\"{} There are {}{}",
                               name,
                               close ? fmt::format("; did you mean \"{}\"?", *close) : ".",
                               fmt::join(names, ", "),
                               more ? " and others" : ""));
}

/// Counts the workers that have come so far, so that none of a thousand has to ask a thousand
/// times. Each leaves a key too, for the message that names the others.
void Meeting::await_all(const std::string& what, Gone gone, const Deadline& deadline) {
  const std::string all = what + "/all";
  const bool is_first = store_->add(fmt::format("{}/here/{}", what, rank_), 1, deadline) == 1;
  if (is_first && store_->add(what + "/count", 1, deadline) == world_size_) {
    store_->set(all, "", deadline);
  }
  for (;;) {
    try {
      store_->wait({all}, deadline.sooner(Deadline::after(kSlice)));
      return;
    } catch (const TimeoutError&) {  // looks around
    }
    std::vector<int> late;
    std::set<int> lost;
    try {
      late = missing(what, Deadline::after(kLookPatience));
      lost = gone_ranks(Deadline::after(kLookPatience));
    } catch (const TimeoutError&) {
      if (deadline.expired()) {
        throw;
      }
      continue;  // on a busy machine the store answers late
    }
    const auto first = std::ranges::find_if(late, [&](int rank) { return lost.contains(rank); });
    if (gone == Gone::kMissed && first != late.end()) {
      throw RendezvousError("rpc.join",
                            fmt::format("rank {} {} before all {} workers had met. See its log.",
                                        *first,
                                        what_became_of(*first, 1, 0ms),
                                        world_size_));
    }
    std::erase_if(late, [&](int rank) { return lost.contains(rank); });
    if (late.empty()) {
      return;
    }
    if (deadline.expired()) {
      throw TimeoutError(
          gone == Gone::kMissed ? "rpc.join" : "rpc.shutdown",
          fmt::format("waited for {} of {} workers in vain: ranks {}. See their logs.",
                      late.size(),
                      world_size_,
                      strings::ranges(late)),
          {.op = what, .group = "rpc", .rank = rank_, .peers = late});
    }
  }
}

/// Those whose latest process is gone.
std::set<int> Meeting::gone_ranks(const Deadline& deadline) {
  std::map<int, uint32_t> ends;
  for (const rendezvous::Departure& one : job_->departures("rank/", deadline)) {
    ++ends[rank_of_member(one.member)];
  }
  std::set<int> gone;
  for (const auto& [rank, count] : ends) {
    const bool has_met = store_->check({card_key(rank)}, deadline);
    if (!has_met || count >= std::max(card(rank, deadline).incarnation(), 1U)) {
      gone.insert(rank);
    }
  }
  return gone;
}

std::vector<int> Meeting::missing(const std::string& what, const Deadline& deadline) const {
  std::set<int> here;
  for (const std::string& key : store_->keys(what + "/here/", deadline)) {
    here.insert(static_cast<int>(
        strings::parse_int(std::string_view(key).substr(key.rfind('/') + 1)).value_or(-1)));
  }
  std::vector<int> missing;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (!here.contains(rank)) {
      missing.push_back(rank);
    }
  }
  return missing;
}

void Meeting::say_done(const Deadline& deadline) {
  await_all("done", Gone::kExcused, deadline);
}

uint32_t Meeting::incarnation(const Deadline& deadline) const {
  return static_cast<uint32_t>(departures(rank_, deadline).size()) + 1;
}

/// Of all processes that had the rank, in the order of their ends.
std::vector<rendezvous::Departure> Meeting::departures(int rank, const Deadline& deadline) const {
  std::vector<rendezvous::Departure> all = job_->departures(fmt::format("rank/{}", rank), deadline);
  std::erase_if(all, [&](const auto& one) { return rank_of_member(one.member) != rank; });
  return all;
}

std::string Meeting::what_became_of(int rank,
                                    uint32_t incarnation,
                                    std::chrono::milliseconds patience) const {
  const Deadline until = Deadline::after(patience);
  for (;;) {
    try {
      if (std::string fate = look_for(rank, incarnation, Deadline::after(kSlice)); !fate.empty()) {
        return fate;
      }
    } catch (const Error&) {
      if (job_->host_rank() == rank) {
        return "died or left the job: the store that it hosts does not answer";
      }
    }
    if (until.expired()) {
      return "";
    }
    std::this_thread::sleep_for(kPoll);
  }
}

std::string Meeting::look_for(int rank, uint32_t incarnation, const Deadline& deadline) const {
  const std::vector<rendezvous::Departure> all = departures(rank, deadline);
  const size_t before =
      std::max(incarnation, 1U) - 1;  // a card of an earlier version has no number
  if (all.size() > before) {
    const rendezvous::Departure& one = all[before];
    return one.lost ? "died (its process ended without leaving the job, or does not answer)"
                    : fmt::format("has left the job{}", one.note.empty() ? "" : ": " + one.note);
  }
  const std::map<int, std::string> stopped = rendezvous::stopped_ranks(*job_, deadline);
  const auto found = stopped.find(rank);
  return found == stopped.end() ? "" : "does not answer: it is " + found->second;
}

}  // namespace argosy::rpc
