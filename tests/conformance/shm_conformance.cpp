#include "argosy/transport/shm/shm.h"

#include "tests/conformance/transport_conformance.h"

ARGOSY_CONFORMANCE(Shm, [](int rank, int size, const auto& store) {
  return argosy::transport::make_shm(store, rank, size);
});
