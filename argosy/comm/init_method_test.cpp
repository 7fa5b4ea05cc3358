/// init() by the environment of other launchers and over tcp://, as processes. Torch-free.
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/rendezvous/test_store_host.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::launched_ranks;
using test::set_variable;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

/// Joins and adds up the ranks, so that the group is one.
void meet(int rank, int size, const InitOptions& options) {
  const Group world = init(options);
  ASSERT_EQ(world.rank(), rank);
  ASSERT_EQ(world.size(), size);
  int64_t value = rank + 1;
  world.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    transport.all_reduce(&value, 1, DType::kI64, ReduceOp::kSum, deadline.remaining());
  });
  EXPECT_EQ(value, size * (size + 1) / 2);
}

void run(int n, const std::function<void(int)>& fn) {
  test::run_ranks(n, fn, {.mode = test::RankMode::kProcesses, .deadline = 50s});
}

std::string at(const test::OwnedPort& owned) {
  return "127.0.0.1:" + std::to_string(owned.port());
}

TEST(InitMethod, TorchrunsVariables) {
  const test::OwnedPort owned;
  run(3, [&](int rank) {
    set_variable("RANK", std::to_string(rank));
    set_variable("WORLD_SIZE", "3");
    set_variable("LOCAL_RANK", std::to_string(rank));
    set_variable("LOCAL_WORLD_SIZE", "3");
    set_variable("MASTER_ADDR", "localhost");
    set_variable("MASTER_PORT", std::to_string(owned.port()));
    meet(rank, 3, {.timeout = 30s});
  });
}

// Rank 0 hosts the store; all have TLS from the job's token.
TEST(InitMethod, TorchrunsVariablesOverTls) {
  const test::OwnedPort owned;
  const auto as_rank = [&](int rank) {
    set_variable("RANK", std::to_string(rank));
    set_variable("WORLD_SIZE", "2");
    set_variable("MASTER_ADDR", "127.0.0.1");
    set_variable("MASTER_PORT", std::to_string(owned.port()));
    set_variable("ARGOSY_TOKEN", "0123456789abcdef");
    set_variable("ARGOSY_TLS", "1");
  };
  run(2, [&](int rank) {
    as_rank(rank);
    meet(rank, 2, {.timeout = 30s});
  });
  run(2, [&](int rank) {
    as_rank(rank);
    if (rank == 1) {
      set_variable("ARGOSY_TLS", "0");
    }
    EXPECT_THROW((void)init({.timeout = 3s}), Error);  // nobody is let in without it
  });
}

TEST(InitMethod, PaddlesEndpoints) {
  const test::OwnedPort first;
  const test::OwnedPort second;
  run(2, [&](int rank) {
    set_variable("PADDLE_TRAINER_ID", std::to_string(rank));
    set_variable("PADDLE_TRAINERS_NUM", "2");
    set_variable("PADDLE_TRAINER_ENDPOINTS", at(first) + "," + at(second));
    set_variable("PADDLE_CURRENT_ENDPOINT", at(rank == 0 ? first : second));
    meet(rank, 2, {.timeout = 30s});
  });
}

TEST(InitMethod, PaddlesMaster) {
  const test::OwnedPort owned;
  run(2, [&](int rank) {
    set_variable("PADDLE_GLOBAL_RANK", std::to_string(rank));
    set_variable("PADDLE_GLOBAL_SIZE", "2");
    set_variable("PADDLE_MASTER", at(owned));
    meet(rank, 2, {.timeout = 30s});
  });
}

TEST(InitMethod, TheLaunchersStore) {
  for (const auto& outcome : launched_ranks(
           2, 2, [](int rank) { meet(rank, 2, {.timeout = 30s}); }, 50s)) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
  }
}

TEST(InitMethod, TcpWithOptionsAndWithAQuery) {
  const test::OwnedPort owned;
  run(3, [&](int rank) {
    InitOptions options{.init_method = "tcp://" + at(owned), .timeout = 30s};
    if (rank == 1) {
      options.init_method += "?rank=1&world_size=3";
    } else {
      options.rank = rank;
      options.world_size = 3;
    }
    meet(rank, 3, options);
  });
}

}  // namespace
}  // namespace argosy::comm
