/// NCCL's transport in the exact mode, its data copied to a device and back: over the fake
/// libnccl.so.2, each rank on a card of the second device; and over the real one where there is a
/// GPU, which ranks may share.
#include <memory>
#include <utility>
#include <vector>

#include "argosy/comm/device_queues.h"
#include "argosy/transport/nccl/nccl.h"

#include "tests/conformance/transport_conformance.h"
#include "tests/support/cards.h"
#include "tests/support/second_device.h"
#include "tests/support/staged_transport.h"

namespace argosy::conformance {
namespace {

std::unique_ptr<transport::Transport> exact_on(c10::Device card,
                                               const char* library,
                                               int rank,
                                               int size,
                                               const std::shared_ptr<rendezvous::Store>& store) {
  return test::staged(transport::make_nccl(
      store, rank, size, {.library = library, .queues = comm::queues_of(card), .mode = [] {
                            return transport::NcclMode::kExact;
                          }}));
}

/// One that skips itself where there is no card.
std::vector<Case> on_cuda(const std::vector<int>& sizes) {
  Factory make = [](int rank, int size, const auto& store) {
    return exact_on(test::card_over_nccl(rank, size), "", rank, size, store);
  };
  return all_cases(
      test::has_cards() ? std::move(make) : Factory(), {test::RankMode::kProcesses}, sizes);
}

INSTANTIATE_TEST_SUITE_P(NcclOnCuda,
                         TransportConformance,
                         ::testing::ValuesIn(on_cuda({2, 3})),
                         case_name);
INSTANTIATE_TEST_SUITE_P(NcclOnCuda,
                         TransportFailures,
                         ::testing::ValuesIn(on_cuda({5})),
                         case_name);
INSTANTIATE_TEST_SUITE_P(NcclOnCuda, TransportDeaths, ::testing::ValuesIn(on_cuda({5})), case_name);

}  // namespace
}  // namespace argosy::conformance

ARGOSY_CONFORMANCE_WITHOUT_MISMATCHES(Nccl, [](int rank, int size, const auto& store) {
  using namespace argosy;
  const c10::Device card = test::second_device(rank);
  comm::set_stream_handle(card.type(), &test::handle_of);
  return exact_on(card, ARGOSY_FAKE_NCCL, rank, size, store);
});
