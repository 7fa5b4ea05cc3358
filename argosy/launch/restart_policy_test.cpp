#include "argosy/launch/restart_policy.h"

#include <signal.h>

#include <chrono>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using UsageErrors = RestartPolicy::UsageErrors;

using namespace std::chrono_literals;

RankEnd failed(int code, std::chrono::seconds ran = 1s) {
  return {.rank = 1, .exit = {code, 0}, .ran = ran};
}

TEST(Restart, NoneIsTheDefault) {
  RestartPolicy policy(0, UsageErrors::kEndTheJob);
  EXPECT_EQ(policy.next(failed(1)), std::nullopt);
  EXPECT_EQ(policy.describe(failed(1), std::nullopt), "exit code 1");
}

TEST(Restart, WaitsLongerWhileRanksFailAtOnce) {
  RestartPolicy policy(100, UsageErrors::kEndTheJob);
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 8; ++i) {
    waits.push_back(policy.next(failed(1)).value());
  }
  EXPECT_EQ(waits, (std::vector<std::chrono::milliseconds>{0s, 1s, 2s, 4s, 8s, 16s, 30s, 30s}));
  EXPECT_EQ(policy.next(failed(1, 11s)), 0s);  // it had worked for a while
  EXPECT_EQ(policy.next(failed(1)), 0s);
  EXPECT_EQ(policy.next(failed(1)), 1s);
}

TEST(Restart, CountsAndSaysSo) {
  RestartPolicy policy(2, UsageErrors::kEndTheJob);
  EXPECT_EQ(policy.describe(failed(1), policy.next(failed(1))), "restart 1 of 2 now");
  EXPECT_EQ(policy.describe(failed(1), policy.next(failed(1))), "restart 2 of 2 in 1.0 s");
  EXPECT_EQ(policy.next(failed(1)), std::nullopt);
  EXPECT_EQ(policy.count(), 2);
  const RankEnd killed{.exit = {0, SIGKILL}};
  EXPECT_EQ(policy.describe(killed, std::nullopt), "exit code 137 after 2 restarts");
}

TEST(Restart, WhoSavedBecauseItWasToldToStopIsNotStartedAgain) {
  EXPECT_EQ(RestartPolicy(3, UsageErrors::kRestart).next(failed(75)), std::nullopt);
}

TEST(Restart, UsageErrorsWouldComeAgain) {
  for (const int code : {2, 126, 127}) {
    RestartPolicy policy(3, UsageErrors::kEndTheJob);
    EXPECT_EQ(policy.next(failed(code)), std::nullopt);
    EXPECT_EQ(policy.describe(failed(2), std::nullopt),
              "exit code 2, not restarted: it would come again (--restart_usage_errors tries)");
    EXPECT_EQ(RestartPolicy(3, UsageErrors::kRestart).next(failed(code)), 0s);
  }
  const RankEnd interrupted{.exit = {0, SIGINT}, .ran = 1s};  // signal 2 is no exit code 2
  EXPECT_EQ(RestartPolicy(3, UsageErrors::kEndTheJob).next(interrupted), 0s);
}

}  // namespace
}  // namespace argosy::launch
