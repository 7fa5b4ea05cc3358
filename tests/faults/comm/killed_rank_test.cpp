/// Rank 3 of 5, which is nobody's neighbour in particular, dies: at set-up, in mid-collective, at
/// exit. All others must get a CommError that names 3, never a victim of the cascade. Torch-free.
#include <csignal>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/rendezvous/test_store_host.h"
#include "argosy/transport/in_process.h"

#include <nlohmann/json.hpp>

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

constexpr int kRanks = 5;
constexpr int kVictim = 3;

void all_reduce(const Group& group, std::vector<float>& values, int at = -1) {
  group.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    if (at >= 0 && group.rank() == kVictim) {
      // Dies inside the operation, with the others waiting in it for its data.
      raise(SIGKILL);
    }
    transport.all_reduce(values.data(),
                         static_cast<int64_t>(values.size()),
                         DType::kF32,
                         ReduceOp::kSum,
                         deadline.remaining());
  });
}

void expect_victim_named(const std::vector<test::RankOutcome>& outcomes) {
  EXPECT_EQ(outcomes[kVictim].signal, SIGKILL) << describe(outcomes[kVictim]);
  for (const test::RankOutcome& outcome : outcomes) {
    if (outcome.rank != kVictim) {
      EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
      EXPECT_THAT(outcome.peers, ElementsAre(kVictim)) << describe(outcome);
    }
  }
}

/// Runs fn on 5 processes over gloo; every rank but the victim must end with a CommError naming it.
void expect_all_name_the_victim(const std::function<void(int rank, const ConnectOptions&)>& fn) {
  const test::TempDir folder;
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes =
      test::try_run_ranks(kRanks,
                          [&](int rank) {
                            fn(rank,
                               {.backend = "gloo",
                                .store = rendezvous::file_store((folder.path() / "store").string()),
                                .rank = rank,
                                .size = kRanks,
                                .timeout = 30s});
                          },
                          {.mode = test::RankMode::kProcesses, .deadline = 50s});
  expect_victim_named(outcomes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);  // found, not waited for
}

TEST(KilledRank, AtSetUp) {
  expect_all_name_the_victim([](int rank, ConnectOptions options) {
    if (rank == kVictim) {
      // It is present, as a process that init() registered would be, and never connects.
      options.keep = options.store->announce("world/rank/3", Deadline::after(10s));
      raise(SIGKILL);
    }
    const Group world = connect(options);
  });
}

TEST(KilledRank, InMidCollective) {
  expect_all_name_the_victim([](int /*rank*/, const ConnectOptions& options) {
    const Group world = connect(options);
    std::vector<float> values(1 << 16, 1);
    for (int step = 0; step < 100; ++step) {
      all_reduce(world, values, step == 20 ? step : -1);
    }
  });
}

TEST(KilledRank, InMidCollectiveAtTheLaunchersStore) {
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = test::launched_ranks(
      kRanks,
      kRanks - 1,
      [](int /*rank*/) {
        const Group world = init({.timeout = 40s});
        std::vector<float> values(1 << 16, 1);
        for (int step = 0; step < 100; ++step) {
          all_reduce(world, values, step == 20 ? step : -1);
        }
      },
      50s);
  expect_victim_named(outcomes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST(KilledRank, AtExit) {
  expect_all_name_the_victim([](int rank, const ConnectOptions& options) {
    const Group world = connect(options);
    std::vector<float> values(100, 1);
    all_reduce(world, values);
    if (rank == kVictim) {
      raise(SIGKILL);  // after its last operation, before any goodbye
    }
    all_reduce(world, values);  // what the others still want from it
  });
}

TEST(KilledRank, LaterOperationsTellTheFirstCauseAndTheRecordIsOnDisk) {
  const test::TempDir logs;
  setenv("ARGOSY_LOG_DIR", logs.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  expect_all_name_the_victim([](int rank, const ConnectOptions& options) {
    const Group world = connect(options);
    std::vector<float> values(100, 1);
    all_reduce(world, values);
    if (rank == kVictim) {
      raise(SIGKILL);
    }
    EXPECT_THROW(all_reduce(world, values), CommError);
    all_reduce(world, values);
  });
  unsetenv("ARGOSY_LOG_DIR");  // NOLINT(concurrency-mt-unsafe)
  for (int rank = 0; rank < kRanks; ++rank) {
    std::ifstream file(logs.path() / ("flight_rank" + std::to_string(rank) + ".json"));
    ASSERT_EQ(file.is_open(), rank != kVictim) << rank;
    if (file.is_open()) {
      const auto operations = nlohmann::json::parse(file).at("operations");
      ASSERT_EQ(operations.size(), 2U);
      EXPECT_EQ(operations[0].at("state"), "done");
      EXPECT_EQ(operations[1].at("state"), "failed");
      EXPECT_THAT(operations[1].at("error").get<std::string>(), HasSubstr("rank 3"));
    }
  }
}

TEST(KilledRank, AmongThreadsInProcess) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(kRanks, [&](int rank) {
    auto transport = transport::make_in_process(store, rank, kRanks, {.group = "world"});
    if (rank == kVictim) {
      transport->barrier(20s);
      transport::lose(std::move(transport));
      return;
    }
    const Group world = make_group(std::move(transport), store, {.name = "world", .timeout = 20s});
    world.state().run({.op = "barrier"}, {}, [](Transport& t, const Deadline& deadline) {
      t.barrier(deadline.remaining());
    });
    std::vector<float> values(100, 1);
    all_reduce(world, values);
  });
  for (const test::RankOutcome& outcome : outcomes) {
    if (outcome.rank != kVictim) {
      EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
      EXPECT_THAT(outcome.peers, ElementsAre(kVictim)) << describe(outcome);
    }
  }
}

}  // namespace
}  // namespace argosy::comm
