#include "argosy/launch/nodes/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/launch/nodes/clock.h"
#include "argosy/os/addresses.h"
#include "argosy/rendezvous/store_client.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using rendezvous::Store;

constexpr const char* kArrivalsKey = "nodes/arrivals";
constexpr const char* kPlanKey = "nodes/plan";
constexpr const char* kRefusalKey = "nodes/refusal";

/// How often node 0 looks who is there, in its own memory.
constexpr auto kLook = 20ms;
/// How long node 0 waits before it looks for rivals, and between two looks.
constexpr auto kRivalInterval = 1s;
constexpr std::string_view kMemberKey = "node/";
/// More launchers than ever come to one meeting, those that were started again included.
constexpr int64_t kMostArrivals = 1 << 16;

/// The longest that a wait goes on without looking up: Ctrl-C is answered this fast.
constexpr auto kMeetingSlice = 200ms;
constexpr auto kFirstWord = 1s;
constexpr auto kForTheAnswer = 2s;
constexpr auto kWordInterval = 10s;

std::string info_key(int64_t arrival) {
  return fmt::format("nodes/info/{}", arrival);
}

/// The arrivals of the nodes that are there, of those below `end`: whoever reaches the store may
/// have announced any other number.
std::vector<size_t> arrivals_there(Store& store, int64_t end, const Deadline& deadline) {
  std::vector<size_t> arrivals;
  for (const rendezvous::Member& member : store.members(std::string(kMemberKey), deadline)) {
    const auto arrival =
        strings::parse_int(std::string_view(member.name).substr(kMemberKey.size()));
    if (arrival && *arrival >= 0 && *arrival < end) {
      arrivals.push_back(static_cast<size_t>(*arrival));
    }
  }
  return arrivals;
}

/// Who is there at this moment, by arrival. One whose description has not come yet is not.
std::vector<std::optional<NodeInfo>> who_is_there(Store& store) {
  const Deadline soon = Deadline::after(2s);
  const int64_t given = store.add(kArrivalsKey, 0, soon);
  std::vector<std::optional<NodeInfo>> arrived;
  for (const size_t arrival : arrivals_there(store, std::min(given, kMostArrivals), soon)) {
    const std::string key = info_key(static_cast<int64_t>(arrival));
    if (store.check({key}, soon)) {
      arrived.resize(std::max(arrived.size(), arrival + 1));
      arrived[arrival] = NodeInfo::from_json(store.get(key, soon));
    }
  }
  return arrived;
}

/// The wait of one node for all others.
class Wait {
 public:
  Wait(const Meeting& meeting, const Patience& patience)
      : meeting_(meeting), patience_(patience), deadline_(Deadline::after(meeting.timeout)) {}

  [[nodiscard]] Deadline slice() const { return deadline_.sooner(Deadline::after(kMeetingSlice)); }
  [[nodiscard]] const Deadline& end() const { return deadline_; }
  [[nodiscard]] bool over() const { return deadline_.expired(); }
  [[nodiscard]] std::string state(Store* store) {
    return describe_wait(meeting_, there(store), waited());
  }
  /// Node 0's time is up first: so all end with what it says, and nobody is missed who only gave
  /// up.
  void wait_for_the_answer() { deadline_ = Deadline::after(deadline_.remaining() + kForTheAnswer); }
  /// Between two slices. `store`: nullptr where it is not reached yet, for the reason `why`.
  void look_up(Store* store, std::string_view why = "") {
    std::string word;
    if (waited() >= next_word_) {
      next_word_ = waited() + kWordInterval;
      word = store == nullptr ? fmt::format("waiting for node 0 at {}:{}, {}{}",
                                            meeting_.host,
                                            meeting_.port,
                                            times(),
                                            hint(why))
                              : state(store);
    }
    patience_(word);
  }
  /// True once per kRivalInterval.
  [[nodiscard]] bool time_for_rivals() {
    const bool due = waited() >= next_rival_;
    next_rival_ += due ? kRivalInterval : 0ms;
    return due;
  }
  [[nodiscard]] std::string times() const {
    return fmt::format("{} s of {} s",
                       std::chrono::duration_cast<std::chrono::seconds>(waited()).count(),
                       std::chrono::duration_cast<std::chrono::seconds>(meeting_.timeout).count());
  }

 private:
  /// Somebody is there, but does not talk to us.
  [[nodiscard]] static std::string hint(std::string_view why) {
    const bool cut = why.find("Socket closed") != std::string_view::npos ||
                     why.find("Connection reset") != std::string_view::npos;
    return cut ? " (it closes the connection: is --tls the same on all nodes?)" : "";
  }
  [[nodiscard]] std::chrono::milliseconds waited() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - start_);
  }
  /// Addresses of those that have come.
  [[nodiscard]] std::vector<std::string> there(Store* store) {
    std::vector<std::string> addresses;
    for (const std::optional<NodeInfo>& node : who_is_there(*store)) {
      if (node) {
        addresses.push_back(node->address);
      }
    }
    return addresses;
  }

  const Meeting& meeting_;
  const Patience& patience_;
  Deadline::Clock::time_point start_ = Deadline::Clock::now();
  Deadline deadline_;
  std::chrono::milliseconds next_word_ = kFirstWord;
  std::chrono::milliseconds next_rival_ = kRivalInterval;
};

/// Does another node of the list hold a meeting of its own for this job? Then the lists differ, and
/// each would wait for the other to come. One address at a time; "": nothing seen there.
std::string find_rival(const Meeting& meeting, const NodeInfo& self, const std::string& address) {
  try {
    const auto store = rendezvous::connect_store(
        address, meeting.port, meeting.token, Deadline::after(100ms), meeting.tls);
    const NodeInfo rival = NodeInfo::from_json(store->get(info_key(0), Deadline::after(500ms)));
    if (rival.job_id != self.job_id) {
      return "";
    }
    std::string refusal = fmt::format(
        "{} was given --ips {}, {} was given --ips {}: the same list, in the same order, belongs "
        "on every node",
        address,
        fmt::join(rival.ips, ","),
        self.address,
        fmt::join(self.ips, ","));
    store->set(kRefusalKey, refusal, Deadline::after(500ms));  // this node will be gone soon
    return refusal;
  } catch (const Error&) {  // nobody hosts anything there, as it should be
    return "";
  }
}

/// Waits for a key, slice by slice; nullopt: the time is up, or it is `until`.
std::optional<std::string> wait_for(Store& store,
                                    const std::string& key,
                                    Wait& wait,
                                    const Deadline& until) {
  while (!wait.over() && !until.expired()) {
    try {
      return store.get(key, wait.slice());
    } catch (const TimeoutError&) {
      wait.look_up(&store);
    }
  }
  return std::nullopt;
}

std::shared_ptr<Store> connect(const Meeting& meeting, Wait& wait) {
  while (true) {
    try {
      return rendezvous::connect_store(
          meeting.host, meeting.port, meeting.token, Deadline::after(1s), meeting.tls);
    } catch (const RefusedError&) {
      throw;
    } catch (const RendezvousError& error) {
      if (wait.over()) {
        throw TimeoutError("launch.nodes",
                           fmt::format("node 0 was not found at {}, {}: {}",
                                       os::host_port(meeting.host, meeting.port),
                                       wait.times(),
                                       error.what()));
      }
      wait.look_up(nullptr, error.what());
    }
  }
}

size_t count(const std::vector<std::optional<NodeInfo>>& arrived) {
  return static_cast<size_t>(
      std::ranges::count_if(arrived, [](const auto& node) { return node.has_value(); }));
}

/// Node 0 waits until all are there at one moment. Errors: RendezvousError: one's description is
/// not of our form.
JobPlan gather(Store& store, const Meeting& meeting, const NodeInfo& self, Wait& wait) {
  size_t rival = 0;
  while (true) {
    std::vector<std::optional<NodeInfo>> arrived = who_is_there(store);
    const auto wanted = static_cast<size_t>(meeting.nodes);
    while (count(arrived) > wanted) {
      arrived.pop_back();  // more than needed: who came first counts
    }
    if (count(arrived) == wanted) {
      return make_plan(arrived, self.run_id);
    }
    if (wait.over()) {
      return {.refusal = "not all nodes came: " + wait.state(&store)};
    }
    if (const auto refusal = wait_for(store, kRefusalKey, wait, Deadline::after(kLook))) {
      return {.refusal = *refusal};
    }
    if (!meeting.expected.empty() && wait.time_for_rivals()) {
      const std::string& address = meeting.expected[rival++ % meeting.expected.size()];
      if (std::string found = address == self.address ? "" : find_rival(meeting, self, address);
          !found.empty()) {
        return {.refusal = std::move(found)};
      }
    }
  }
}

}  // namespace

std::string describe_wait(const Meeting& meeting,
                          const std::vector<std::string>& there,
                          std::chrono::milliseconds waited) {
  std::string who;
  if (!meeting.expected.empty()) {
    std::vector<std::string> missing = meeting.expected;
    std::erase_if(missing,
                  [&](const std::string& node) { return std::ranges::count(there, node) > 0; });
    who = fmt::format(": {}", fmt::join(missing, ", "));
  } else if (!there.empty()) {
    who = fmt::format(" (there: {})", fmt::join(there, ", "));
  }
  const auto seconds = [](std::chrono::milliseconds time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  };
  return fmt::format("waiting for {} of {} nodes{}, {} s of {} s",
                     meeting.nodes - static_cast<int>(there.size()),
                     meeting.nodes,
                     who,
                     seconds(waited),
                     seconds(meeting.timeout));
}

std::vector<int> Met::others() const {
  const auto end = static_cast<int64_t>(plan.node_of_arrival.size());
  const std::vector<size_t> there = arrivals_there(*store, end, Deadline::after(1s));
  return {there.begin(), there.end()};
}

namespace {

/// False: another launcher of this host hosts already, and the store is its.
bool begin_to_host(const Meeting& meeting, Met& met) {
  try {
    met.server =
        rendezvous::StoreServer::start({.host = meeting.bind.empty() ? meeting.host : meeting.bind,
                                        .port = meeting.port,
                                        .token = meeting.token,
                                        .tls = meeting.tls});
    met.store = met.server->local();
    return true;
  } catch (const RendezvousError&) {
    if (!meeting.may_join) {
      throw;
    }
    try {
      met.store = rendezvous::connect_store(
          meeting.host, meeting.port, meeting.token, Deadline::after(2s), meeting.tls);
      return false;
    } catch (const RendezvousError&) {  // then who listens there is none of ours
    }
    throw;
  }
}

}  // namespace

Met meet(const Meeting& meeting, const NodeInfo& own, const Patience& patience) {
  Met met;
  Wait wait(meeting, patience);
  NodeInfo self = own;
  bool hosts = meeting.hosts;
  if (!hosts) {
    met.store = connect(meeting, wait);
  } else if (!begin_to_host(meeting, met)) {
    hosts = false;
    self.wanted_rank = -1;
  }
  if (!hosts) {
    wait.wait_for_the_answer();
  }
  const Deadline soon = Deadline::after(10s);
  if (!hosts) {
    met.clock_offset_us = clock_offset_us([&] { return met.store->time_us(soon); });
  }
  const int64_t arrival = met.store->add(kArrivalsKey, 1, soon) - 1;
  met.presence = met.store->announce(fmt::format("{}{}", kMemberKey, arrival), soon);
  met.store->set(info_key(arrival), self.to_json(), soon);
  if (hosts) {
    try {
      met.plan = gather(*met.store, meeting, self, wait);
      met.plan.keep_alive = meeting.keep_alive;
    } catch (const RendezvousError& error) {  // so that all hear it
      const std::string text = error.what();
      met.plan.refusal = text.substr(text.find(' ') + 1);  // without "[launch.nodes]"
    }
    met.store->set(kPlanKey, met.plan.to_json(), soon);
  } else {
    const std::optional<std::string> plan = wait_for(*met.store, kPlanKey, wait, wait.end());
    if (!plan) {
      throw TimeoutError("launch.nodes", "not all nodes came: " + wait.state(met.store.get()));
    }
    met.plan = JobPlan::from_json(*plan);
  }
  if (!met.plan.refusal.empty()) {
    if (met.server) {  // the others must hear it before the store goes
      met.presence->leave("refused");
      (void)met.server->wait_until_members_left(Deadline::after(5s));
    }
    throw RendezvousError("launch.nodes", met.plan.refusal);
  }
  const bool planned = arrival < static_cast<int64_t>(met.plan.node_of_arrival.size()) &&
                       met.plan.node_of_arrival[static_cast<size_t>(arrival)] >= 0;
  if (!planned) {
    throw RendezvousError("launch.nodes",
                          fmt::format("the job at {}:{} has its {} nodes already: is this one of "
                                      "another job, or started twice?",
                                      meeting.host,
                                      meeting.port,
                                      meeting.nodes));
  }
  met.node = met.plan.node_of_arrival[static_cast<size_t>(arrival)];
  return met;
}

}  // namespace argosy::launch
