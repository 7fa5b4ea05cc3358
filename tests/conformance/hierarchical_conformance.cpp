#include "argosy/transport/hierarchical/hierarchical.h"

#include "tests/conformance/transport_conformance.h"

// Two hosts, of which the first has a rank more where the number is odd: as on several machines,
// but for the wire. tests/faults/launcher has real ones.
ARGOSY_CONFORMANCE(Hierarchical, [](int rank, int size, const auto& store) {
  return argosy::transport::make_hierarchical(
      store, rank, size, {.hosts = argosy::conformance::two_hosts(size)});
});
