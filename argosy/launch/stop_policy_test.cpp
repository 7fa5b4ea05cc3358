#include "argosy/launch/stop_policy.h"

#include <signal.h>

#include <chrono>
#include <optional>

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

class Stop : public testing::Test {
 protected:
  StopPolicy policy_{5s};
  StopPolicy::Time start_{1h};  // a made-up clock
};

TEST_F(Stop, NothingIsDueWhileAllIsWell) {
  EXPECT_FALSE(policy_.stopping());
  EXPECT_EQ(policy_.due(start_ + 100h), std::nullopt);
  EXPECT_EQ(policy_.wake(), std::nullopt);
}

TEST_F(Stop, FailureAsksThenKillsThenGivesUp) {
  policy_.stop(start_);
  EXPECT_TRUE(policy_.stopping());
  EXPECT_EQ(policy_.due(start_), SIGTERM);
  EXPECT_EQ(policy_.due(start_), std::nullopt);  // once
  EXPECT_EQ(policy_.wake(), start_ + 5s);
  EXPECT_EQ(policy_.due(start_ + 5s - 1ms), std::nullopt);
  EXPECT_FALSE(policy_.killed());
  EXPECT_EQ(policy_.due(start_ + 5s), SIGKILL);
  EXPECT_TRUE(policy_.killed());
  EXPECT_EQ(policy_.due(start_ + 6s), std::nullopt);
  EXPECT_FALSE(policy_.given_up(start_ + 14s));
  EXPECT_TRUE(policy_.given_up(start_ + 5s + StopPolicy::kPatience));
  EXPECT_EQ(policy_.interrupted_by(), std::nullopt);
}

TEST_F(Stop, RanksThatFailTogetherHaveAMomentForIt) {
  policy_.stop(start_, 100ms);
  EXPECT_TRUE(policy_.stopping());
  EXPECT_EQ(policy_.due(start_ + 99ms), std::nullopt);
  EXPECT_EQ(policy_.wake(), start_ + 100ms);
  policy_.stop(start_ + 50ms, 100ms);  // another failure prolongs nothing
  EXPECT_EQ(policy_.due(start_ + 100ms), SIGTERM);
  EXPECT_EQ(policy_.due(start_ + 5100ms), SIGKILL);
}

TEST_F(Stop, TheMomentEndsWhenThereIsNothingToWaitFor) {
  policy_.stop(start_, 100ms);
  policy_.stop(start_ + 10ms);
  EXPECT_EQ(policy_.due(start_ + 10ms), SIGTERM);
  StopPolicy interrupted(5s);
  interrupted.stop(start_, 100ms);
  interrupted.interrupt(SIGINT, start_ + 10ms);
  EXPECT_EQ(interrupted.due(start_ + 10ms), SIGINT);
}

TEST_F(Stop, LaterFailuresDoNotProlong) {
  policy_.stop(start_);
  (void)policy_.due(start_);
  policy_.stop(start_ + 4s);
  EXPECT_EQ(policy_.due(start_ + 4s), std::nullopt);
  EXPECT_EQ(policy_.due(start_ + 5s), SIGKILL);
}

TEST_F(Stop, TheUsersSignalIsPassedOn) {
  policy_.interrupt(SIGINT, start_);
  EXPECT_EQ(policy_.due(start_), SIGINT);
  EXPECT_EQ(policy_.interrupted_by(), SIGINT);
  EXPECT_EQ(policy_.due(start_ + 5s), SIGKILL);
}

TEST_F(Stop, OneSignalToEachOfTwoLaunchersIsNoSecondOne) {
  policy_.interrupt_elsewhere(SIGTERM, start_);
  EXPECT_EQ(policy_.due(start_), SIGTERM);
  policy_.interrupt(SIGTERM, start_ + 700ms);
  EXPECT_EQ(policy_.due(start_ + 700ms), std::nullopt);
  EXPECT_FALSE(policy_.hurried());
  policy_.interrupt_elsewhere(SIGTERM, start_ + 2s);
  EXPECT_FALSE(policy_.hurried());
  policy_.interrupt(SIGTERM, start_ + 1300ms);
  EXPECT_TRUE(policy_.hurried());
  EXPECT_EQ(policy_.due(start_ + 1300ms), SIGKILL);
}

TEST_F(Stop, AnotherLaunchersHurryIsOurs) {
  policy_.hurry(start_);  // nothing to hurry
  EXPECT_FALSE(policy_.hurried());
  policy_.interrupt_elsewhere(SIGINT, start_);
  EXPECT_EQ(policy_.due(start_), SIGINT);
  policy_.hurry(start_ + 600ms);
  EXPECT_EQ(policy_.due(start_ + 600ms), SIGKILL);
}

TEST_F(Stop, TheSecondOneKillsAtOnce) {
  policy_.interrupt(SIGINT, start_);
  (void)policy_.due(start_);
  policy_.interrupt(SIGTERM, start_ + 1s);
  EXPECT_EQ(policy_.due(start_ + 1s), SIGKILL);
  EXPECT_TRUE(policy_.hurried());
  EXPECT_EQ(policy_.interrupted_by(), SIGINT);
  policy_.interrupt(SIGINT, start_ + 2s);
  EXPECT_EQ(policy_.due(start_ + 2s), std::nullopt);
}

TEST_F(Stop, OneRequestMayComeAsSeveralSignals) {
  policy_.interrupt(SIGTERM, start_);
  (void)policy_.due(start_);
  policy_.interrupt(SIGTERM, start_ + 1ms);
  policy_.interrupt(SIGINT, start_ + StopPolicy::kOneRequest - 1ms);
  policy_.interrupt(SIGHUP, start_ + 3s);
  EXPECT_EQ(policy_.due(start_ + 3s), std::nullopt);
  EXPECT_FALSE(policy_.hurried());
  EXPECT_EQ(policy_.due(start_ + 5s), SIGKILL);
}

TEST_F(Stop, ASignalDuringAFailuresGraceKeepsItsDeadline) {
  policy_.stop(start_);
  (void)policy_.due(start_);
  policy_.interrupt(SIGINT, start_ + 4s);
  EXPECT_EQ(policy_.due(start_ + 4s), SIGINT);
  EXPECT_EQ(policy_.due(start_ + 5s), SIGKILL);
}

TEST_F(Stop, NoGraceAtAll) {
  StopPolicy policy(0s);
  policy.stop(start_);
  EXPECT_EQ(policy.due(start_), SIGKILL);
}

}  // namespace
}  // namespace argosy::launch
