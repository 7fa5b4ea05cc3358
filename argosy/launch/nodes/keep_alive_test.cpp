#include "argosy/launch/nodes/keep_alive.h"

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

TEST(KeepAlive, IsSilentAfterThreeSecondsWithTheFirstWait) {
  EXPECT_EQ(KeepAlive().limit() + KeepAlive().interval, 3s);
}

TEST(Pulses, SilenceIsCountedFromTheLastChange) {
  const Pulses::Clock::time_point start{};
  Pulses pulses(3, start);
  EXPECT_EQ(pulses.look(1, "", start + 400ms), 400ms);  // never heard of: since the beginning
  EXPECT_EQ(pulses.look(1, "1", start + 500ms), 0ms);
  EXPECT_EQ(pulses.look(1, "1", start + 900ms), 400ms);
  EXPECT_EQ(pulses.look(2, "1", start + 900ms), 0ms);  // each for itself
  EXPECT_EQ(pulses.look(1, "2", start + 901ms), 0ms);
}

TEST(Pulses, TimeInWhichTheJudgeStoodStillIsNobodysSilence) {
  const Pulses::Clock::time_point start{};
  Pulses pulses(2, start);
  EXPECT_EQ(pulses.look(1, "1", start), 0ms);
  pulses.forgive(10s);
  EXPECT_EQ(pulses.look(1, "1", start + 10s + 100ms), 100ms);
}

}  // namespace
}  // namespace argosy::launch
