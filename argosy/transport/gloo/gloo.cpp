#include "argosy/transport/gloo/gloo.h"

#include <utility>

#include "argosy/transport/gloo/gloo_transport.h"

namespace argosy::transport {

std::unique_ptr<Transport> make_gloo(std::shared_ptr<rendezvous::Store> store,
                                     int rank,
                                     int size,
                                     const GlooOptions& options) {
  auto transport = std::make_unique<Gloo>(std::move(store), rank, size, options);
  transport->connect_all(options);
  return transport;
}

}  // namespace argosy::transport
