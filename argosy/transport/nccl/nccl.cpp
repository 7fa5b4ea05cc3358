#include "argosy/transport/nccl/nccl.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/transport/nccl/nccl_transport.h"

namespace argosy::transport {

std::unique_ptr<Transport> make_nccl(std::shared_ptr<rendezvous::Store> store,
                                     int rank,
                                     int size,
                                     const NcclOptions& options) {
  ARGOSY_CHECK(options.queues != nullptr || !options.refusal.empty(),
               "transport.nccl",
               "NcclOptions::queues is empty");
  auto transport = std::make_unique<nccl::NcclTransport>(std::move(store), rank, size, options);
  transport->connect_all(options);
  return transport;
}

}  // namespace argosy::transport
