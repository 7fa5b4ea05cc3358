#include "argosy/os/children.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/subprocess.h"

namespace argosy::os {
namespace {

using testing::Contains;
using testing::Not;

TEST(Children, AreListedUntilTheyAreReaped) {
  std::optional<Subprocess> child(*Subprocess::spawn({.args = {"sleep", "100"}}));
  const pid_t pid = child->pid();
  EXPECT_THAT(*children(), Contains(pid));
  child.reset();  // kills and reaps
  EXPECT_THAT(*children(), Not(Contains(pid)));
}

TEST(Children, OfOtherThreadsToo) {
  const Subprocess child = *Subprocess::spawn({.args = {"sleep", "100"}});
  std::thread([&] { EXPECT_THAT(*children(), Contains(child.pid())); }).join();
}

}  // namespace
}  // namespace argosy::os
