/// What a launcher with --heartbeat_timeout sees of a rank, from joining to leaving; as processes
/// over file://. Torch-free.
#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/os/heartbeat.h"
#include "argosy/rendezvous/test_store_host.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using os::HeartbeatMonitor;
using os::Pulse;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

/// As the launcher does before it starts a rank.
HeartbeatMonitor watch_this_process() {
  HeartbeatMonitor monitor = *HeartbeatMonitor::create();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  ::setenv("ARGOSY_HEARTBEAT_FD", std::to_string(monitor.fd()).c_str(), 1);
  return monitor;
}

void work(const Group& group) {
  int64_t value = 1;
  group.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    transport.all_reduce(&value, 1, DType::kI64, ReduceOp::kSum, deadline.remaining());
  });
}

using Rank = std::function<void(const InitOptions&, const HeartbeatMonitor&)>;

void run_watched(int ranks, const Rank& body) {
  const test::TempDir folder;
  for (const auto& outcome :
       test::try_run_ranks(ranks,
                           [&](int rank) {
                             const HeartbeatMonitor monitor = watch_this_process();
                             body({.init_method = "file://" + (folder.path() / "store").string(),
                                   .timeout = 30s,
                                   .rank = rank,
                                   .world_size = ranks},
                                  monitor);
                           },
                           {.mode = test::RankMode::kProcesses, .deadline = 50s})) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
  }
}

TEST(InitHeartbeat, BeatsAsLongAsTheRankIsInTheJob) {
  run_watched(2, [](const InitOptions& options, const HeartbeatMonitor& monitor) {
    EXPECT_FALSE(monitor.read());
    Group world = init(options);
    work(world);
    const std::optional<Pulse> pulse = monitor.read();
    ASSERT_TRUE(pulse);
    EXPECT_EQ(pulse->waiting, 0);
    EXPECT_EQ(pulse->last, "all_reduce (seq 0) of world");
    world.destroy();
    EXPECT_FALSE(monitor.read()) << "this Group lives on, the rank's membership does not";

    Group again = init(options);
    ASSERT_TRUE(monitor.read());
    world = Group();
    EXPECT_TRUE(monitor.read()) << "the end of the former world is not that of this one";
    again.destroy();
  });
}

TEST(InitHeartbeat, OfARankAloneIsNobodysBusiness) {
  run_watched(1, [](const InitOptions& options, const HeartbeatMonitor& monitor) {
    const Group world = init(options);
    work(world);
    EXPECT_FALSE(monitor.read());
  });
}

TEST(InitHeartbeat, ARankThatMakesAGroupWaits) {
  test::SharedCounter seen;
  run_watched(2, [&](const InitOptions& options, const HeartbeatMonitor& monitor) {
    const Group world = init(options);
    if (options.rank == 1) {
      ASSERT_TRUE(seen.wait_for(1));
      (void)world.new_group({0, 1});
      return;
    }
    auto made = std::async(std::launch::async, [&] { return world.new_group({0, 1}); });
    const Deadline deadline = Deadline::after(20s);
    std::optional<Pulse> pulse = monitor.read();
    while (pulse && pulse->waiting != 1 && !deadline.expired()) {
      std::this_thread::yield();
      pulse = monitor.read();
    }
    seen.add(1);
    ASSERT_TRUE(pulse);
    EXPECT_EQ(pulse->waiting, 1);
    EXPECT_EQ(pulse->last, "new_group of world.0");
    (void)made.get();
    EXPECT_EQ(monitor.read()->waiting, 0);
  });
}

}  // namespace
}  // namespace argosy::comm
