#include "argosy/launch/nodes/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using rendezvous::Store;

constexpr const char* kWhere = "launch.nodes";
constexpr const char* kPlanKey = "nodes/plan";
constexpr const char* kRefusalKey = "nodes/refusal";

/// The longest that a wait goes on without looking up: Ctrl-C is answered this fast.
constexpr auto kSlice = 200ms;
constexpr auto kWordInterval = 10s;

std::string info_key(int64_t arrival) {
  return fmt::format("nodes/info/{}", arrival);
}

/// The wait of one node for all others.
class Wait {
 public:
  Wait(const Meeting& meeting, const Patience& patience)
      : meeting_(meeting), patience_(patience), deadline_(Deadline::after(meeting.timeout)) {}

  [[nodiscard]] Deadline slice() const { return deadline_.sooner(Deadline::after(kSlice)); }
  [[nodiscard]] const Deadline& end() const { return deadline_; }
  [[nodiscard]] bool over() const { return deadline_.expired(); }
  [[nodiscard]] std::string state(Store* store) {
    return describe_wait(meeting_, there(store), waited());
  }
  /// Between two slices. `store`: nullptr where it is not reached yet.
  void look_up(Store* store) {
    std::string word;
    if (waited() >= next_word_) {
      next_word_ += kWordInterval;
      word = store == nullptr
                 ? fmt::format(
                       "waiting for node 0 at {}:{}, {}", meeting_.host, meeting_.port, times())
                 : state(store);
    }
    patience_(word);
  }
  [[nodiscard]] std::string times() const {
    return fmt::format("{} s of {} s",
                       std::chrono::duration_cast<std::chrono::seconds>(waited()).count(),
                       std::chrono::duration_cast<std::chrono::seconds>(meeting_.timeout).count());
  }

 private:
  [[nodiscard]] std::chrono::milliseconds waited() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - start_);
  }
  /// Addresses of those that have come.
  [[nodiscard]] std::vector<std::string> there(Store* store) {
    std::vector<std::string> addresses;
    const Deadline soon = Deadline::after(2s);
    for (const std::string& key : store->keys("nodes/info/", soon)) {
      addresses.push_back(NodeInfo::from_json(store->get(key, soon)).address);
    }
    return addresses;
  }

  const Meeting& meeting_;
  const Patience& patience_;
  Deadline::Clock::time_point start_ = Deadline::Clock::now();
  Deadline deadline_;
  std::chrono::milliseconds next_word_ = kWordInterval;
};

/// Does another node of the list hold a meeting of its own? Then the lists differ, and each would
/// wait for the other to come. "": none that could be seen.
std::string find_rival(const Meeting& meeting, const NodeInfo& self) {
  for (const std::string& address : meeting.expected) {
    if (address == self.address) {
      continue;
    }
    try {
      const auto store =
          rendezvous::connect_store(address, meeting.port, meeting.token, Deadline::after(100ms));
      const NodeInfo rival = NodeInfo::from_json(store->get(info_key(0), Deadline::after(500ms)));
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
    }
  }
  return "";
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
          meeting.host, meeting.port, meeting.token, Deadline::after(1s));
    } catch (const RendezvousError& error) {
      const bool refused = std::string_view(error.what()).find("token") != std::string_view::npos;
      if (refused || wait.over()) {
        throw;
      }
      wait.look_up(nullptr);
    }
  }
}

/// Node 0 gathers all, and tells all what came of it.
JobPlan gather(Store& store, const Meeting& meeting, const NodeInfo& self, Wait& wait) {
  std::vector<NodeInfo> arrived;
  while (static_cast<int>(arrived.size()) < meeting.nodes) {
    const std::string next = info_key(static_cast<int64_t>(arrived.size()));
    const std::optional<std::string> info = wait_for(store, next, wait, Deadline::after(1s));
    if (info) {
      arrived.push_back(NodeInfo::from_json(*info));
    } else if (wait.over()) {
      return {.refusal = "not all nodes came: " + wait.state(&store)};
    } else if (store.check({kRefusalKey}, Deadline::after(1s))) {
      return {.refusal = store.get(kRefusalKey, Deadline::after(1s))};
    } else if (std::string rival = find_rival(meeting, self); !rival.empty()) {
      return {.refusal = std::move(rival)};
    }
  }
  return make_plan(arrived, self.run_id);
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

Met meet(const Meeting& meeting, const NodeInfo& self, const Patience& patience) {
  Met met;
  Wait wait(meeting, patience);
  if (meeting.hosts) {
    met.server = rendezvous::StoreServer::start(
        {.host = meeting.host, .port = meeting.port, .token = meeting.token});
    met.store = met.server->local();
  } else {
    met.store = connect(meeting, wait);
  }
  const Deadline soon = Deadline::after(10s);
  const int64_t arrival = met.store->add("nodes/arrivals", 1, soon) - 1;
  met.presence = met.store->announce(fmt::format("node/{}", arrival), soon);
  met.store->set(info_key(arrival), self.to_json(), soon);
  if (meeting.hosts) {
    met.plan = gather(*met.store, meeting, self, wait);
    met.store->set(kPlanKey, met.plan.to_json(), soon);
  } else {
    const std::optional<std::string> plan = wait_for(*met.store, kPlanKey, wait, wait.end());
    if (!plan) {
      throw TimeoutError(kWhere, "not all nodes came: " + wait.state(met.store.get()));
    }
    met.plan = JobPlan::from_json(*plan);
  }
  if (!met.plan.refusal.empty()) {
    if (met.server) {  // the others must hear it before the store goes
      met.presence->leave("refused");
      (void)met.server->wait_until_members_left(Deadline::after(5s));
    }
    throw RendezvousError(kWhere, met.plan.refusal);
  }
  if (arrival >= static_cast<int64_t>(met.plan.node_of_arrival.size())) {
    throw RendezvousError(kWhere,
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
