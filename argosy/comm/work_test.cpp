#include "argosy/comm/work.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/operation.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::exception_ptr some_error() {
  return std::make_exception_ptr(CommError("comm.x", "rank 3 died", {.peers = {3}}));
}

TEST(Work, DefaultConstructedIsDone) {
  const Work work;
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.is_success());
  work.wait();
  work.wait(0ms);
}

TEST(Work, TellsItsStateBeforeAndAfter) {
  auto state = std::make_shared<WorkState>();
  const Work work(state);
  EXPECT_FALSE(work.is_completed());
  EXPECT_FALSE(work.is_success());
  EXPECT_EQ(work.exception(), nullptr);
  state->complete(nullptr);
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.is_success());
}

TEST(Work, RethrowsTheErrorEachTime) {
  auto state = std::make_shared<WorkState>();
  const Work work(state);
  state->complete(some_error());
  EXPECT_TRUE(work.is_completed());
  EXPECT_FALSE(work.is_success());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(work.wait(), CommError);
    EXPECT_THROW(work.wait(1ms), CommError);
  }
  EXPECT_NE(work.exception(), nullptr);
}

TEST(Work, OwnTimeoutLeavesTheOperationAlone) {
  auto state = std::make_shared<Operation>();
  state->info.op = "all_reduce";
  state->seq = 17;
  const Work work(state);
  try {
    work.wait(1ms);
    FAIL() << "no timeout";
  } catch (const TimeoutError& e) {
    EXPECT_THAT(e.what(), HasSubstr("not finished after 1 ms (all_reduce, seq 17)"));
  }
  state->complete(nullptr);
  work.wait(0ms);
}

TEST(Work, WakesEveryWaiter) {
  auto state = std::make_shared<WorkState>();
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const Work work(state);
      if (i % 2 == 0) {
        work.wait();
      } else {
        work.wait(30s);
      }
      ++woken;
    });
  }
  state->complete(nullptr);
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(woken, 4);
}

}  // namespace
}  // namespace argosy::comm
