#include "argosy/launch/nodes/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/socket.h"

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Reach, WhoCannotBeReachedIsNamedWithTheAddressThatItGave) {
  const auto held = *os::HeldPort::hold();  // nobody listens there: the host answers all the same
  const std::string port = std::to_string(held.number());
  // No connection leads to the broadcast address; a name is not tried.
  const JobPlan plan{.nodes = {{.host = "a", .address = "127.0.0.1", .first_rank = 0},
                               {.host = "b", .address = "127.0.0.2", .first_rank = 1},
                               {.host = "c", .address = "255.255.255.255", .first_rank = 2},
                               {.host = "d", .address = "a.name.invalid", .first_rank = 3}},
                     .endpoints = {"127.0.0.1:" + port,
                                   "127.0.0.2:" + port,
                                   "255.255.255.255:" + port,
                                   "a.name.invalid:" + port}};
  int looks = 0;
  EXPECT_THAT(find_unreachable(plan, 0, [&] { return ++looks > 0; }),
              ElementsAre(HasSubstr("node 2 (c) says that it is at 255.255.255.255, which cannot "
                                    "be reached from node 0")));
  EXPECT_EQ(looks, 3);
  EXPECT_THAT(find_unreachable(plan, 0, [] { return false; }), IsEmpty());
  EXPECT_THAT(find_unreachable(plan, 1, [] { return true; }), IsEmpty());  // tries node 0 only
}

}  // namespace
}  // namespace argosy::launch
