#include "argosy/launch/store_host.h"

#include "argosy/rendezvous/store_server.h"

namespace argosy::launch {
namespace {

class HostedStore final : public StoreHost {
 public:
  explicit HostedStore(const std::string& token)
      : server_(rendezvous::StoreServer::start({.token = token})) {}

  uint16_t port() const override { return server_->port(); }

 private:
  std::unique_ptr<rendezvous::StoreServer> server_;
};

}  // namespace

std::unique_ptr<StoreHost> host_store(const std::string& token) {
  return std::make_unique<HostedStore>(token);
}

}  // namespace argosy::launch
