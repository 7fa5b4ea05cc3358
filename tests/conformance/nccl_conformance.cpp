/// NCCL's transport over the fake libnccl.so.2, in the exact mode: each rank on a card of the
/// second device, its data copied there and back.
#include <utility>

#include "argosy/comm/device_queues.h"
#include "argosy/transport/nccl/nccl.h"

#include "tests/conformance/transport_conformance.h"
#include "tests/support/second_device.h"
#include "tests/support/staged_transport.h"

ARGOSY_CONFORMANCE_WITHOUT_MISMATCHES(Nccl, [](int rank, int size, const auto& store) {
  using namespace argosy;
  const c10::Device card = test::second_device(rank);
  comm::set_stream_handle(card.type(), &test::handle_of);
  return test::staged(transport::make_nccl(
      store, rank, size, {.library = ARGOSY_FAKE_NCCL, .queues = comm::queues_of(card), .mode = [] {
                            return transport::NcclMode::kExact;
                          }}));
});
