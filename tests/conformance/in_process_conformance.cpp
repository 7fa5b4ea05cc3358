#include "argosy/transport/in_process.h"

#include "tests/conformance/transport_conformance.h"

ARGOSY_CONFORMANCE_THREADS(InProcess, [](int rank, int size, const auto& store) {
  return argosy::transport::make_in_process(store, rank, size);
});
