#include "argosy/base/check.h"
#include "argosy/comm/backend.h"
#include "argosy/comm/init.h"
#include "argosy/comm/solo_transport.h"

namespace argosy::comm {

Group connect(const ConnectOptions& options) {
  ARGOSY_CHECK(options.size > 0 && options.rank >= 0 && options.rank < options.size,
               "comm.connect",
               "rank {} does not fit a group of {}",
               options.rank,
               options.size);
  // Weak: the groups made from this one keep the factory, and must not keep the store.
  GroupOptions group{.name = options.name,
                     .timeout = options.timeout,
                     .checked = options.checked,
                     .hosts = options.hosts,
                     .keep = options.keep};
  group.make_transport = [make = find_backend(options.backend, options.hosts),
                          job = std::weak_ptr(options.store)](TransportRequest request) {
    request.job = job.lock();
    return make(request);
  };
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
                                         .store = store,
                                         .timeout = options.timeout});
  return make_group(std::move(transport), std::move(store), std::move(group));
}

}  // namespace argosy::comm
