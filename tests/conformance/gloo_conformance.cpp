#include "argosy/transport/gloo/gloo.h"

#include "tests/conformance/transport_conformance.h"

ARGOSY_CONFORMANCE(Gloo, [](int rank, int size, const auto& store) {
  return argosy::transport::make_gloo(store, rank, size);
});
