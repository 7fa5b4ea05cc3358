#include "argosy/comm/init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/comm/backend.h"
#include "argosy/comm/hooks.h"
#include "argosy/comm/solo_transport.h"
#include "argosy/os/crash_handler.h"
#include "argosy/os/heartbeat.h"
#include "argosy/rendezvous/host_card.h"
#include "argosy/rendezvous/join.h"
#include "argosy/transport/shm/shm.h"

namespace argosy::comm {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{200};

/// What lasts as long as this process is in the job, and ends in the reverse order.
struct Membership {
  std::shared_ptr<rendezvous::Presence> presence;
  std::shared_ptr<os::Heartbeat> heartbeat;  ///< nullptr: nobody watches
};

/// Tells the launcher that this rank gets on: it hangs when it does nothing and waits for nobody.
/// Weak: the hook lives as long as any Group, a model's too, and the membership must not.
class HeartbeatHook final : public Hook {
 public:
  explicit HeartbeatHook(std::weak_ptr<os::Heartbeat> heartbeat)
      : heartbeat_(std::move(heartbeat)) {}
  void on_enqueued(const OperationEvent& event) override { beat(event, 1); }
  void on_ended(const OperationEvent& event) override { beat(event, -1); }

 private:
  void beat(const OperationEvent& event, int waiting) {
    if (const std::shared_ptr<os::Heartbeat> heartbeat = heartbeat_.lock()) {
      fmt::memory_buffer text;
      fmt::format_to(std::back_inserter(text), "{}", event.op);
      if (event.seq >= 0) {
        fmt::format_to(std::back_inserter(text), " (seq {})", event.seq);
      }
      fmt::format_to(std::back_inserter(text), " of {}", event.group);
      heartbeat->beat({text.data(), text.size()}, waiting);
    }
  }
  std::weak_ptr<os::Heartbeat> heartbeat_;
};

/// One for all groups of this process: where it ends, silence means nothing any more.
std::shared_ptr<os::Heartbeat> heartbeat_of_process() {
  static std::mutex mutex;
  static std::weak_ptr<os::Heartbeat> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<os::Heartbeat> heartbeat = shared.lock();
  if (heartbeat == nullptr) {
    heartbeat = os::Heartbeat::begin();
    shared = heartbeat;
  }
  return heartbeat;
}

/// The value of `key`, which rank `setter` sets. Nobody leaves a job before all have read what was
/// to be read, so a departure is a failure, unless the value came just before it.
/// Errors: CommError naming a rank that died or left; TimeoutError naming the setter.
std::string await(const rendezvous::Joined& joined,
                  int setter,
                  const std::string& key,
                  const Deadline& deadline) {
  rendezvous::Store& store = *joined.store;
  CommContext context{.op = "init", .group = "world", .rank = joined.rank, .peers = {setter}};
  for (;;) {
    try {
      return store.get(key, deadline.sooner(Deadline::after(kBetweenLooks)));
    } catch (const TimeoutError&) {
      if (deadline.expired()) {
        throw TimeoutError("comm.init",
                           fmt::format("rank {} did not say what it was given before the deadline. "
                                       "See its log.",
                                       setter),
                           context);
      }
    }
    const auto gone = store.departures("rank/", deadline);
    if (!gone.empty() && !store.check({key}, deadline)) {
      const auto lost = std::ranges::find_if(gone, [](const auto& one) { return one.lost; });
      const rendezvous::Departure& first = lost == gone.end() ? gone.front() : *lost;
      const std::string rank = first.member.substr(std::string_view("rank/").size());
      context.peers = {static_cast<int>(strings::parse_int(rank).value_or(-1))};
      throw CommError(
          "comm.init",
          fmt::format("rank {} {} before all ranks were connected{}. See its log.",
                      rank,
                      first.lost ? "is gone (its process ended, or does not answer)" : "left",
                      first.note.empty() ? "" : fmt::format(" (it said: {})", first.note)),
          context);
    }
  }
}

/// What a rank says of itself before the ranks connect.
struct Card {
  std::string settings{};       ///< what all must have chosen alike
  std::string neighbourhood{};  ///< equal where ranks can share memory

  [[nodiscard]] std::string encode() const { return settings + "\n" + neighbourhood; }
  [[nodiscard]] static Card decode(const std::string& text) {
    const size_t line = std::min(text.find('\n'), text.size());
    return {text.substr(0, line), text.substr(std::min(line + 1, text.size()))};
  }
};

constexpr std::string_view kAgreed = "agreed ";

/// Rank 0's verdict on all cards: "agreed 0 0 1", the numbers of the ranks' hosts, or why not.
std::string judge(const rendezvous::Joined& joined, const Card& mine, const Deadline& deadline) {
  std::map<std::string, int> hosts{{mine.neighbourhood, 0}};
  std::string verdict = std::string(kAgreed) + "0";
  for (int other = 1; other < joined.world_size; ++other) {
    const Card theirs =
        Card::decode(await(joined, other, fmt::format("comm/card/{}", other), deadline));
    if (theirs.settings != mine.settings) {
      return fmt::format(
          "rank {} has {}, rank 0 has {}. Give all ranks the same options and the same "
          "ARGOSY_BACKEND and ARGOSY_CHECKED.",
          other,
          theirs.settings,
          mine.settings);
    }
    const int next = static_cast<int>(hosts.size());
    verdict += fmt::format(" {}", hosts.try_emplace(theirs.neighbourhood, next).first->second);
  }
  return verdict;
}

/// Compares what all ranks must have chosen alike, or their first operation would hang, and finds
/// out who shares a host. Rank 0 reads all and tells the verdict, so that every rank fails when one
/// differs. Returns the number of each rank's host.
std::vector<int> agree(const rendezvous::Joined& joined,
                       const std::string& settings,
                       const Deadline& deadline) {
  static constexpr const char* kVerdict = "comm/verdict";
  rendezvous::Store& store = *joined.store;
  const Card mine{settings, rendezvous::neighbourhood_id()};
  std::string verdict;
  if (joined.rank == 0) {
    verdict = judge(joined, mine, deadline);
    store.set(kVerdict, verdict, deadline);
  } else {
    store.set(fmt::format("comm/card/{}", joined.rank), mine.encode(), deadline);
    verdict = await(joined, 0, kVerdict, deadline);
  }
  if (!verdict.starts_with(kAgreed)) {
    throw ConfigError("comm.init", verdict);
  }
  std::vector<int> hosts;
  for (const std::string& word : strings::split(verdict.substr(kAgreed.size()), ' ')) {
    hosts.push_back(static_cast<int>(strings::parse_int(word).value_or(-1)));
  }
  return hosts;
}

/// The option, or the variable where the option leaves the choice.
std::string wanted_backend(const InitOptions& options) {
  if (options.backend != "auto") {
    return options.backend;
  }
  std::string value = strings::to_lower(env::get("ARGOSY_BACKEND").value_or("auto"));
  try {
    const Backends known = Backends::parse(value);
    if (known.host != "in_process") {
      return value;
    }
  } catch (const UsageError&) {  // told below, with the variable's name
  }
  throw ConfigError(
      "comm.init",
      fmt::format("ARGOSY_BACKEND: expected auto, shm, hierarchical, gloo, nccl, or one for each "
                  "as in cpu:gloo,cuda:nccl, got \"{}\". Correct or unset it.",
                  value));
}

/// Tells the others, who wait for this rank, why they do so in vain.
void say_goodbye(rendezvous::Presence& presence, const std::string& why) {
  try {
    presence.leave(why);
  } catch (const Error& error) {
    log::debug("{}", error.what());  // the store is gone: what stopped us is what matters
  }
}

/// Returns the hosts of the ranks of a group by world rank.
std::vector<int> by_world_rank(const std::vector<int>& hosts, const std::vector<int>& world_ranks) {
  if (hosts.empty() || world_ranks.empty()) {
    return hosts;
  }
  std::vector<int> of_world(static_cast<size_t>(std::ranges::max(world_ranks)) + 1, -1);
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    of_world[static_cast<size_t>(world_ranks[rank])] = hosts[rank];
  }
  return of_world;
}

}  // namespace

InitOptions settle(InitOptions options) {
  ARGOSY_CHECK(options.timeout > std::chrono::milliseconds(0),
               "comm.init",
               "timeout must be positive, got {} ms",
               options.timeout.count());
  options.backend = wanted_backend(options);
  options.checked = options.checked || env::get_bool("ARGOSY_CHECKED").value_or(false);
  const Backends backends = Backends::parse(options.backend);
  ARGOSY_CHECK(backends.host != "in_process",
               "comm.init",
               "backend \"in_process\" joins threads, not processes. Use comm::connect().");
  (void)device_backend(backends.devices);  // checks the variables of devices
  return options;
}

void check_world_ranks(const std::vector<int>& world_ranks, int size) {
  ARGOSY_CHECK(world_ranks.empty() || world_ranks.size() == static_cast<size_t>(size),
               "comm.connect",
               "{} world ranks do not fit a group of {}",
               world_ranks.size(),
               size);
  std::set<int> seen;
  for (const int rank : world_ranks) {
    ARGOSY_CHECK(rank >= 0 && seen.insert(rank).second,
                 "comm.connect",
                 "world rank {} is negative or given twice",
                 rank);
  }
}

Group init(const InitOptions& options) {
  os::install_crash_handler();  // first: what is wrong with the call itself is told by it too
  const InitOptions settled = settle(options);
  const Deadline deadline = Deadline::after(options.timeout);
  rendezvous::Joined joined = rendezvous::join(
      {.method = options.init_method, .rank = options.rank, .world_size = options.world_size},
      deadline);
  if (joined.world_size > 1) {
    log::set_identity(fmt::format("rank {}", joined.rank));
  }
  return form({}, std::move(joined), settled, deadline);
}

Group form(const FormOptions& options,
           rendezvous::Joined joined,
           const InitOptions& settled,
           const Deadline& deadline) {
  const auto membership = std::make_shared<Membership>();
  membership->presence = std::move(joined.presence);
  try {
    std::vector<int> hosts;
    if (joined.world_size > 1) {
      hosts = agree(
          joined,
          fmt::format(
              "backend {} and checked mode {}", settled.backend, settled.checked ? "on" : "off"),
          deadline);
    }
    Group group = connect({.backend = settled.backend,
                           .hosts = std::move(hosts),
                           .world_ranks = options.world_ranks,
                           .store = joined.store,
                           .rank = joined.rank,
                           .size = joined.world_size,
                           .name = options.name,
                           .timeout = settled.timeout,
                           .checked = settled.checked,
                           .keep = membership});
    if (joined.world_size > 1) {  // alone, nobody waits for it, and no operation need tell of it
      membership->heartbeat = heartbeat_of_process();
    }
    if (membership->heartbeat) {
      add_hook(group, std::make_shared<HeartbeatHook>(membership->heartbeat));
    }
    return group;
  } catch (const Error& error) {
    if (membership->presence != nullptr) {
      say_goodbye(*membership->presence, error.what());
    }
    throw;
  }
}

Group connect(const ConnectOptions& options) {
  ARGOSY_CHECK(options.size > 0 && options.rank >= 0 && options.rank < options.size,
               "comm.connect",
               "rank {} does not fit a group of {}",
               options.rank,
               options.size);
  check_world_ranks(options.world_ranks, options.size);
  const std::vector<int> hosts = by_world_rank(options.hosts, options.world_ranks);
  // Weak: the groups made from this one keep the factory, and must not keep the store.
  GroupOptions group{.name = options.name,
                     .timeout = options.timeout,
                     .checked = options.checked,
                     .world_ranks = options.world_ranks,
                     .hosts = hosts,
                     .keep = options.keep};
  const Backends backends = Backends::parse(options.backend);
  const auto with_job = [job = std::weak_ptr(options.store),
                         ranks = options.world_ranks](TransportFactory make) {
    return [make = std::move(make), job, ranks](TransportRequest request) {
      request.job = job.lock();
      request.job_ranks = ranks;
      return make(request);
    };
  };
  group.make_transport = with_job(find_backend(backends.host, hosts));
  if (backends.devices != ForDevices::kThroughHost) {
    group.make_device_transport = with_job(device_backend(backends.devices));
  }
  if (options.size == 1) {
    return make_group(std::make_unique<SoloTransport>(), options.store, std::move(group));
  }
  ARGOSY_CHECK(options.store != nullptr,
               "comm.connect",
               "group \"{}\" of {} ranks needs a store to meet in",
               options.name,
               options.size);
  auto store = rendezvous::prefix_store(options.store, options.name);
  auto transport = group.make_transport({.rank = options.rank,
                                         .size = options.size,
                                         .group = options.name,
                                         .world_ranks = options.world_ranks,
                                         .store = store,
                                         .timeout = options.timeout});
  return make_group(std::move(transport), std::move(store), std::move(group));
}

}  // namespace argosy::comm
