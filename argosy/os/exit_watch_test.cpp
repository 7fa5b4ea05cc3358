#include "argosy/os/exit_watch.h"

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/subprocess.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAreArray;
using testing::IsEmpty;

TEST(ExitWatch, RemembersTheOrderOfDeaths) {
  ExitWatch watch = *ExitWatch::create();
  std::vector<Subprocess> children;
  for (uint64_t tag = 0; tag < 8; ++tag) {
    children.push_back(*Subprocess::spawn({.args = {"sleep", "1000"}}));
    ASSERT_TRUE(watch.add(children.back().pidfd(), tag).ok());
  }
  EXPECT_THAT(watch.ended(), IsEmpty());
  const std::vector<uint64_t> order{3, 0, 7, 1, 6, 2, 5, 4};
  for (const uint64_t tag : order) {
    ASSERT_TRUE(children[tag].signal(SIGKILL).ok());
    ASSERT_TRUE(*wait_ready(children[tag].pidfd(), POLLIN, Deadline::after(20s)));
  }
  EXPECT_TRUE(*wait_ready(watch.fd(), POLLIN, Deadline::after(20s)));
  EXPECT_THAT(watch.ended(), ElementsAreArray(order));
  EXPECT_THAT(watch.ended(), IsEmpty());  // each once
}

}  // namespace
}  // namespace argosy::os
