#include "argosy/rendezvous/stopped_ranks.h"

#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/rendezvous/store_kinds.h"

namespace argosy::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(StoppedRanks, AreReadByThoseOfTheSameStartUntilTheyGoOn) {
  const std::shared_ptr<Store> whole = in_process_store();
  const auto job = prefix_store(whole, "run/r7/1");
  const auto former = prefix_store(whole, "run/r7/0");
  const auto world = prefix_store(job, "world");
  const auto member = job->announce("rank/3", soon());
  const auto in_group = world->announce("rank/4", soon());
  const std::string key = tell_stopped(*whole, "r7", 3, "stopped by SIGSTOP", soon());
  EXPECT_THAT(stopped_ranks(*job, soon()), ElementsAre(Pair(3, "stopped by SIGSTOP")));
  EXPECT_THAT(stopped_ranks(*former, soon()), IsEmpty());
  EXPECT_EQ(tell_stopped(*whole, "r7", 4, "stopped", soon()), "");  // a member of a group only
  EXPECT_EQ(tell_stopped(*whole, "r8", 3, "stopped", soon()), "");  // another start
  EXPECT_EQ(process_of_rank(*whole, "r7", 3, soon()), std::nullopt);
  job->set("join/3", "host\n4711\n4\nr7", soon());
  EXPECT_EQ(process_of_rank(*whole, "r7", 3, soon()), std::optional<int64_t>(4711));
  EXPECT_EQ(process_of_rank(*whole, "r8", 3, soon()), std::nullopt);
  EXPECT_TRUE(whole->remove(key, soon()));
  EXPECT_THAT(stopped_ranks(*job, soon()), IsEmpty());
}

}  // namespace
}  // namespace argosy::rendezvous
