#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/join.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::rendezvous {
namespace {

constexpr std::chrono::seconds kFarewell{5};

bool is_address(const std::string& host) {
  std::array<std::byte, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// Server and store of the rank that hosts both.
struct Hosted {
  std::unique_ptr<StoreServer> server;
  std::shared_ptr<Store> store;

  explicit Hosted(std::unique_ptr<StoreServer> started)
      : server(std::move(started)), store(server->local()) {}
  ~Hosted() {
    if (!server->wait_until_members_left(Deadline::after(kFarewell))) {
      log::debug("[rendezvous.close] other ranks still used the store {} s after this one was done",
                 kFarewell.count());
    }
  }
  Hosted(const Hosted&) = delete;
  Hosted& operator=(const Hosted&) = delete;
  Hosted(Hosted&&) = delete;
  Hosted& operator=(Hosted&&) = delete;
};

/// A file store whose folder goes when all ranks left it.
struct Shared {
  std::shared_ptr<Store> store;
  size_t members;

  Shared(std::shared_ptr<Store> opened, int world_size)
      : store(std::move(opened)), members(static_cast<size_t>(world_size)) {}
  ~Shared() { remove_finished_file_store(*store, members); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Shared(Shared&&) = delete;
  Shared& operator=(Shared&&) = delete;
};

// A literal address is listened on itself. A name is not: Debian's /etc/hosts resolves a host's own
// name to 127.0.1.1, where no other host could reach it.
std::shared_ptr<Store> host_store(const MeetingPlace& place) {
  std::string interface = "0.0.0.0";
  if (is_address(place.host) || place.host == "localhost") {
    interface = place.host;
  }
  auto hosted = std::make_shared<Hosted>(
      StoreServer::start({.host = interface, .port = place.port, .token = place.token}));
  return {hosted, hosted->store.get()};
}

std::shared_ptr<Store> open_bare(const MeetingPlace& place, const Deadline& deadline) {
  switch (place.kind) {
    case MeetingPlace::Kind::kAlone:
      return in_process_store();
    case MeetingPlace::Kind::kLauncher:
      return connect_store(place.host, place.port, place.token, deadline);
    case MeetingPlace::Kind::kRankZero:
      return place.rank == 0 ? host_store(place)
                             : connect_store(place.host, place.port, place.token, deadline);
    case MeetingPlace::Kind::kFile: {
      auto shared = std::make_shared<Shared>(file_store(place.path), place.world_size);
      return {shared, shared->store.get()};
    }
  }
  throw InternalError("rendezvous.open_store", "unknown kind of meeting place");
}

}  // namespace

std::shared_ptr<Store> open_store(const MeetingPlace& place, const Deadline& deadline) {
  static std::atomic<int> joins_at_launcher = 0;
  std::shared_ptr<Store> store = open_bare(place, deadline);
  std::string prefix = place.run_id.empty() ? "" : "run/" + place.run_id;
  if (place.kind == MeetingPlace::Kind::kLauncher) {
    prefix = fmt::format("{}/{}", prefix.empty() ? "run" : prefix, joins_at_launcher++);
  }
  return prefix.empty() ? store : prefix_store(std::move(store), prefix);
}

Joined join(const JoinOptions& options, const Deadline& deadline) {
  Joined joined;
  joined.environment = environment_for(options, [](const char* name) { return env::get(name); });
  const MeetingPlace place = resolve(options, joined.environment);
  joined.rank = place.rank;
  joined.world_size = place.world_size;
  joined.store = open_store(place, deadline);
  joined.presence =
      wait_for_ranks(*joined.store, place.rank, place.world_size, deadline, place.run_id);
  return joined;
}

}  // namespace argosy::rendezvous
