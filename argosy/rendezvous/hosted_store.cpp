#include "argosy/rendezvous/hosted_store.h"

#include <chrono>
#include <utility>

#include "argosy/base/log.h"

namespace argosy::rendezvous {
namespace {

constexpr std::chrono::seconds kFarewell{5};

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

}  // namespace

HostedStore host_store(const StoreServerOptions& options) {
  auto hosted = std::make_shared<Hosted>(StoreServer::start(options));
  const uint16_t port = hosted->server->port();
  Store* const store = hosted->store.get();
  return {.store = {std::move(hosted), store}, .port = port};
}

}  // namespace argosy::rendezvous
