// Ranks that are killed amid a training that saves traffic. Processes: forked before libtorch runs.
#include <csignal>

#include <gmock/gmock.h>

#include "argosy/optim/sgd.h"
#include "argosy/parallel/traffic/compress.h"
#include "argosy/parallel/traffic/traffic_test_support.h"
#include "argosy/parallel/traffic/train_apart.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

const DilocoOptions kStreaming{.sync_every = 4, .fragments = 2, .fragment_sync_delay = 1};
const PowerSgdOptions kAtOnce{.start_power_sgd_iter = 0, .min_compression_rate = 0.01};

TEST(TrafficFaults, ADeadRankIsNamed) {
  for (const std::string way : {"powersgd", "dgc", "localsgd", "diloco"}) {
    const test::TempDir folder;
    const auto outcomes = test::try_run_ranks(
        3,
        [&](int rank) {
          comm::Group group =
              comm::connect({.backend = "gloo",
                             .store = rendezvous::file_store(folder.path().string() + "/store"),
                             .rank = rank,
                             .size = 3,
                             .timeout = std::chrono::seconds(10)});
          DistributedDataParallel model(Wide(), group);
          const optim::Optimizer inner = optim::Momentum(model, {.lr = 0.1});
          const optim::Optimizer optimizer =
              way == "dgc"        ? compress(model, inner, DgcOptions())
              : way == "powersgd" ? compress(model, inner, kAtOnce)
              : way == "localsgd" ? train_apart(model, inner, LocalSgdOptions{.k_steps = 2})
                                  : train_apart(model, inner, kStreaming);
          for (int step = 0; step < 50; ++step) {
            if (step == 5 && rank == 2) {
              ::raise(SIGKILL);
            }
            train_step(model, optimizer, batch_of(rank, step));
          }
        },
        {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
    EXPECT_EQ(outcomes[2].signal, SIGKILL);
    for (const int rank : {0, 1}) {
      const auto& outcome = outcomes[static_cast<size_t>(rank)];
      EXPECT_THAT(outcome.error_type, HasSubstr("CommError")) << test::describe(outcome);
      EXPECT_THAT(outcome.peers, ::testing::ElementsAre(2)) << test::describe(outcome);
    }
  }
}

}  // namespace
}  // namespace argosy::parallel
