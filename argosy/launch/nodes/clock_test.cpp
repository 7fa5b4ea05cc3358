#include "argosy/launch/nodes/clock.h"

#include <thread>

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

TEST(ClockOffset, IsFoundThroughSlowAndQuickCalls) {
  constexpr int64_t kAhead = 5'000'000;
  int call = 0;
  const int64_t offset = clock_offset_us([&] {
    const int64_t there = now_us(0) + kAhead;
    if (call++ % 4 != 3) {
      std::this_thread::sleep_for(20ms);  // the answer takes long: half of it would be the error
    }
    return there;
  });
  EXPECT_NEAR(static_cast<double>(offset), static_cast<double>(kAhead), 2'000);
  EXPECT_NEAR(static_cast<double>(now_us(kAhead) - now_us(0)), kAhead, 1'000'000);
}

}  // namespace
}  // namespace argosy::launch
