#include "argosy/transport/shm/shm.h"

#include <utility>

#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {

std::unique_ptr<Transport> make_shm(std::shared_ptr<rendezvous::Store> store,
                                    int rank,
                                    int size,
                                    const ShmOptions& options) {
  auto transport = std::make_unique<Shm>(std::move(store), rank, size, options);
  transport->connect_all();
  return transport;
}

}  // namespace argosy::transport
