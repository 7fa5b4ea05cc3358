// Servers and workers of a training that die, as processes of their own.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/os/memory.h"
#include "argosy/ps/training.h"
#include "argosy/ps/training_test_support.h"

#include "tests/support/owned_port.h"
#include "tests/support/run_ranks.h"

namespace argosy::ps {
namespace {

using namespace trained;
using ::testing::HasSubstr;

/// What processes tell each other.
struct Told {
  std::atomic<int> steps;  ///< of both workers together
  std::atomic<bool> over;
  std::array<float, kWords * kDim + 3 * kDim + 3> weights;
  std::array<char, 400> error;  ///< of the first worker
};

class DyingTraining : public ::testing::Test {
 protected:
  static constexpr int kServers = 2;
  static constexpr int kWorkers = 2;
  static constexpr int kSteps = 30;
  struct Plan {
    TrainingOptions options{};
    int server_dies_at = -1;  ///< of all steps; -1: never
    int worker_dies_at = -1;  ///< of its own: the second worker
  };

  /// Returns what was told. Workers make their steps in turns where nobody waits for all.
  const Told& run(const Plan& plan) {
    memories_.push_back(os::SharedMemory::create("told", sizeof(Told)).or_throw<Error>("test"));
    auto* const told = reinterpret_cast<Told*>(memories_.back().bytes().data());
    const test::OwnedPort port;
    const auto outcomes =
        test::try_run_ranks(kServers + kWorkers,
                            [&](int rank) {  // the first worker hosts the store
                              rank < kWorkers ? work(plan, rank, port.port(), *told)
                                              : serve(plan, rank - kWorkers, port.port(), *told);
                            },
                            {.mode = test::RankMode::kProcesses, .deadline = 90s});
    for (int rank = 0; rank < kServers + kWorkers; ++rank) {
      const bool is_killed = (plan.server_dies_at >= 0 && rank == kWorkers + 1) ||
                             (plan.worker_dies_at >= 0 && rank == 1);
      const test::RankOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      const bool left = plan.worker_dies_at >= 0 && outcome.cut_short && outcome.exit_code == 0;
      EXPECT_TRUE(is_killed ? outcome.signal == SIGKILL : left || outcome.ok())
          << test::describe(outcome);
    }
    return *told;
  }

 private:
  std::vector<os::SharedMemory> memories_{};

  static TrainingOptions options_of(const Plan& plan, bool is_server, int index, uint16_t port) {
    ::setenv("ARGOSY_TOKEN", "a1b2c3d4e5f60718", 1);  // NOLINT(concurrency-mt-unsafe): no threads
    TrainingOptions options = plan.options;
    options.roles = {.servers = kServers,
                     .workers = kWorkers,
                     .is_server = is_server,
                     .index = index,
                     .meeting = "127.0.0.1:" + std::to_string(port),
                     .rank = is_server ? kWorkers + index : index};
    options.timeout = 60s;
    return options;
  }

  static void serve(const Plan& plan, int index, uint16_t port, Told& told) {
    if (index == 1 && plan.server_dies_at >= 0) {
      std::thread([&] {
        while (told.steps < plan.server_dies_at) {
          std::this_thread::sleep_for(1ms);
        }
        ::kill(::getpid(), SIGKILL);
      }).detach();
    }
    std::thread([&] {  // after a worker's death nobody says stop
      while (!told.over) {
        std::this_thread::sleep_for(10ms);
      }
      if (plan.worker_dies_at >= 0) {
        ::_exit(0);
      }
    })
        .detach();
    ServedNet net;
    ServedTraining(net, by_sgd(net), options_of(plan, true, index, port)).serve();
  }

  static void work(const Plan& plan, int index, uint16_t port, Told& told) {
    torch::manual_seed(1);
    ServedNet net;
    const bool in_turns = plan.options.mode != UpdateMode::kSync;
    ServedTraining training(net, by_sgd(net), options_of(plan, false, index, port));
    training.barrier();  // a worker that comes late would read what the first one has learned
    try {
      for (int step = 0; step < kSteps; ++step) {
        while (in_turns && told.steps % kWorkers != index) {
          std::this_thread::sleep_for(500us);
        }
        if (index == 1 && step == plan.worker_dies_at) {
          ::kill(::getpid(), SIGKILL);
        }
        (void)backward(training, net, index, step);
        training.step();
        ++told.steps;
      }
    } catch (const std::exception& error) {
      std::string(error.what()).copy(told.error.data(), told.error.size() - 1);
      told.over = true;
      ::_exit(0);
    }
    while (told.steps < kWorkers * kSteps) {
      std::this_thread::sleep_for(500us);
    }
    if (index == 0) {
      training.pull();
      const at::Tensor weights = weights_of(net);
      std::copy_n(weights.data_ptr<float>(), told.weights.size(), told.weights.begin());
    }
    training.stop();
    told.over = true;
  }
};

TEST_F(DyingTraining, ComesToTheSameBitsWithoutAServer) {
  for (const TrainingOptions& options :
       {TrainingOptions{.mode = UpdateMode::kGeo, .geo_steps = 3},
        TrainingOptions{.dense = DenseUpdates::kCollectives},
        TrainingOptions{
            .mode = UpdateMode::kAsync, .staleness_scaled = true, .delay_compensation = 2}}) {
    const Told& calm = run({.options = options});
    for (const int dies_at : {11, 30}) {
      const Told& disturbed = run({.options = options, .server_dies_at = dies_at});
      EXPECT_EQ(disturbed.weights, calm.weights)
          << "mode " << static_cast<int>(options.mode) << ", step " << dies_at;
    }
  }
}

TEST_F(DyingTraining, EndsWithAWorkerOfItsCollectives) {
  const Told& told = run({.options = {.dense = DenseUpdates::kCollectives}, .worker_dies_at = 5});
  EXPECT_EQ(told.steps, 2 * 5) << told.error.data();
  EXPECT_THAT(std::string(told.error.data()), HasSubstr("group \"workers\""));
  EXPECT_THAT(std::string(told.error.data()), HasSubstr("rank 1"));
}

}  // namespace
}  // namespace argosy::ps
