#include "argosy/os/heartbeat.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::os {
namespace {

using namespace std::chrono_literals;

class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() { ::setenv("ARGOSY_HEARTBEAT_FD", std::to_string(monitor_.fd()).c_str(), 1); }
  ~HeartbeatTest() override { ::unsetenv("ARGOSY_HEARTBEAT_FD"); }
  HeartbeatMonitor monitor_ = *HeartbeatMonitor::create();
};

TEST_F(HeartbeatTest, TellsWhatWasDoneLastAndHowLongAgo) {
  EXPECT_FALSE(monitor_.read());
  const auto heartbeat = Heartbeat::begin();
  ASSERT_TRUE(heartbeat);
  EXPECT_EQ(monitor_.read()->last, "joined the job");
  std::this_thread::sleep_for(20ms);
  EXPECT_GE(monitor_.read()->silent, 20ms);
  const auto before = std::chrono::steady_clock::now();
  heartbeat->beat("all_reduce (seq 55) of world", 1);
  const Pulse pulse = monitor_.read().value();
  EXPECT_EQ(pulse.last, "all_reduce (seq 55) of world");
  EXPECT_LE(pulse.silent, std::chrono::steady_clock::now() - before);
  EXPECT_EQ(pulse.waiting, 1);
  heartbeat->beat(std::string(1000, 'x'), -1);
  EXPECT_EQ(monitor_.read()->last, std::string(103, 'x'));
  EXPECT_EQ(monitor_.read()->waiting, 0);
}

TEST_F(HeartbeatTest, EndsWithItsOwner) {
  auto first = Heartbeat::begin();
  first->beat("in the middle of something", 1);
  first.reset();
  EXPECT_FALSE(monitor_.read());
  const auto again = Heartbeat::begin();
  ASSERT_TRUE(monitor_.read());
  EXPECT_EQ(monitor_.read()->waiting, 0);
}

TEST_F(HeartbeatTest, IsReadFromAnotherProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto heartbeat = Heartbeat::begin();
    heartbeat->beat("from the child");
    ::_exit(0);  // without a destructor: killed, for instance
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(monitor_.read()->last, "from the child");
}

TEST_F(HeartbeatTest, ReadersNeverSeeHalfAText) {
  const auto heartbeat = Heartbeat::begin();
  std::atomic<bool> stop = false;
  std::thread beating([&] {
    for (char letter = 'a'; !stop; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1)) {
      heartbeat->beat(std::string(80, letter));
    }
  });
  int mixed = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string text = monitor_.read()->last;
    mixed += text != "" && text != "joined the job" && text != std::string(80, text[0]) ? 1 : 0;
  }
  stop = true;
  beating.join();
  EXPECT_EQ(mixed, 0);
}

TEST(HeartbeatOfNobody, IsNotThere) {
  ::unsetenv("ARGOSY_HEARTBEAT_FD");
  EXPECT_FALSE(Heartbeat::begin());
  for (const char* value : {"x", "-1", "0", "987654"}) {
    ::setenv("ARGOSY_HEARTBEAT_FD", value, 1);
    EXPECT_FALSE(Heartbeat::begin()) << value;
  }
  ::unsetenv("ARGOSY_HEARTBEAT_FD");
}

}  // namespace
}  // namespace argosy::os
