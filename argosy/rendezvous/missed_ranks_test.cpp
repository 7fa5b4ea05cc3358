#include "argosy/rendezvous/missed_ranks.h"

#include <memory>

#include <gtest/gtest.h>

#include "argosy/rendezvous/store_kinds.h"

namespace argosy::rendezvous {
namespace {

TEST(MissedRanks, SayThemselvesWhatTheirDeathMeans) {
  const std::shared_ptr<Store> whole = in_process_store();
  const auto job = prefix_store(whole, "run/r7/1");
  job->set("join/3", "host\n4711", soon());
  job->set("join/4", "host\n4712", soon());
  EXPECT_EQ(if_missed(*whole, "r7", 3, soon()), MissedRank::kEndsTheJob);
  say_if_missed(*job, 3, MissedRank::kIsMissed, soon());
  say_if_missed(*job, 4, MissedRank::kStartsAgain, soon());
  EXPECT_EQ(if_missed(*whole, "r7", 3, soon()), MissedRank::kIsMissed);
  EXPECT_EQ(if_missed(*whole, "r7", 4, soon()), MissedRank::kStartsAgain);
  EXPECT_EQ(if_missed(*whole, "r7", 33, soon()), MissedRank::kEndsTheJob);
  EXPECT_EQ(if_missed(*whole, "r8", 3, soon()), MissedRank::kEndsTheJob) << "another start";
  EXPECT_FALSE(is_missed(*job, 3, soon()));
  tell_missed(*whole, "r7", 3, soon());
  EXPECT_TRUE(is_missed(*job, 3, soon()));
  EXPECT_FALSE(is_missed(*job, 4, soon()));
}

TEST(MissedRanks, WhatAProcessSaidWhenItHadJoinedBeforeDoesNotCount) {
  const std::shared_ptr<Store> whole = in_process_store();
  const auto former = prefix_store(whole, "run/r7/9");
  former->set("join/3", "host\n4711", soon());
  say_if_missed(*former, 3, MissedRank::kIsMissed, soon());
  prefix_store(whole, "run/r7/10")->set("join/3", "host\n4711", soon());
  EXPECT_EQ(if_missed(*whole, "r7", 3, soon()), MissedRank::kEndsTheJob);
}

}  // namespace
}  // namespace argosy::rendezvous
