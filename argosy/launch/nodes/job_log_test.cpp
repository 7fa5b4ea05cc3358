#include "argosy/launch/nodes/job_log.h"

#include <signal.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

using Kind = JobEvent::Kind;

RankEnd end(int rank, int code, int64_t at_us, bool asked = false) {
  return {.rank = rank,
          .pid = 100 + rank,
          .exit = {.code = code},
          .at_us = at_us,
          .turn = at_us,
          .asked_to_stop = asked};
}

TEST(JobState, IsOverWhenEveryNodeHasEnded) {
  JobState state(2);
  EXPECT_FALSE(state.stopping());
  state.add({.kind = Kind::kEnded, .node = 1, .ends = {end(2, 0, 5)}});
  EXPECT_FALSE(state.over());
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {end(0, 0, 7), end(1, 0, 6)}});
  EXPECT_TRUE(state.over());
  EXPECT_FALSE(state.stopping());
  EXPECT_FALSE(state.first_failure());
  EXPECT_EQ(state.others().size(), 3U);
}

TEST(JobState, TheFirstFailureIsThatOfAllNodesByTime) {
  JobState state(2);
  state.add({.kind = Kind::kFailed, .node = 0, .ends = {end(1, 1, 2000)}});
  EXPECT_TRUE(state.stopping());
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {end(1, 1, 2000), end(0, 143, 2500, true)}});
  RankEnd killed = end(3, 0, 2400);  // seen a moment after the reaction to it
  killed.exit.signal = SIGKILL;
  state.add({.kind = Kind::kEnded, .node = 1, .ends = {end(2, 7, 9000), killed}});
  ASSERT_TRUE(state.first_failure());
  EXPECT_EQ(state.first_failure()->rank, 3);
  std::vector<int> others;
  for (const RankEnd& other : state.others()) {
    others.push_back(other.rank);
  }
  EXPECT_EQ(others, (std::vector<int>{1, 0, 2}));
}

TEST(JobState, OfOneTurnTheOneThatStoodStillIsTheCause) {
  JobState state(1);
  RankEnd killed = end(2, 0, 800'000);
  killed.exit.signal = SIGKILL;
  killed.turn = 7;
  RankEnd hung = end(3, 0, 900'000);
  hung.exit.signal = SIGABRT;
  hung.hung = "2 s";
  hung.turn = 7;
  state.add({.kind = Kind::kFailed, .node = 0, .ends = {killed}});
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {killed, hung}});
  EXPECT_EQ(state.first_failure()->rank, 3);
  JobState several(2);
  hung.node = 1;  // the seventh turn of another launcher
  several.add({.kind = Kind::kFailed, .node = 0, .ends = {killed}});
  several.add({.kind = Kind::kEnded, .node = 0, .ends = {killed}});
  several.add({.kind = Kind::kEnded, .node = 1, .ends = {hung}});
  EXPECT_EQ(several.first_failure()->rank, 2);
}

TEST(JobState, TheFirstFailureIsKeptApart) {
  JobState state(1);
  RankEnd crash = end(3, 0, 20);
  crash.exit.signal = SIGSEGV;
  state.add({.kind = Kind::kFailed, .ends = {crash}});
  state.add(
      {.kind = Kind::kEnded,
       .ends = {end(4, 0, 5), end(1, 1, 10), crash, end(0, 1, 3000), end(2, 137, 4000, true)}});
  EXPECT_EQ(state.first_failure()->rank, 3);
  std::vector<int> others;
  for (const RankEnd& other : state.others()) {
    others.push_back(other.rank);
  }
  EXPECT_EQ(others, (std::vector<int>{4, 1, 0, 2}));
}

TEST(JobState, AnOlderDeathIsTheCauseNotALaterOne) {
  JobState state(1);
  RankEnd late = end(0, 0, 50'000);
  late.exit.signal = SIGSEGV;
  state.add({.kind = Kind::kFailed, .node = 0, .ends = {end(1, 3, 1000)}});
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {late, end(1, 3, 1000)}});
  EXPECT_EQ(state.first_failure()->rank, 1);
}

TEST(JobState, ALostNodeStopsAllAndEndsNothingTwice) {
  JobState state(3);
  state.add({.kind = Kind::kEnded, .node = 2, .ends = {}});
  state.add({.kind = Kind::kLost, .node = 2});  // it had nothing left to say
  EXPECT_FALSE(state.stopping());
  EXPECT_FALSE(state.lost_since_us());
  state.add({.kind = Kind::kLost, .node = 1, .restart = 7, .at_us = 70});  // whenever noticed
  state.add({.kind = Kind::kLost, .node = 1, .at_us = 80});
  EXPECT_EQ(state.lost_since_us(), 70);
  EXPECT_TRUE(state.stopping());
  EXPECT_EQ(state.lost_nodes(), std::vector<int>{1});
  EXPECT_EQ(state.awaited(), std::vector<int>{0});
  EXPECT_FALSE(state.over());
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {}});
  EXPECT_TRUE(state.over());
}

TEST(JobState, WhoFellSilentIsLostSinceThenThoughItIsToldLater) {
  JobState state(3);
  state.add({.kind = Kind::kLost, .node = 2, .at_us = 100});
  state.add({.kind = Kind::kLost, .node = 1, .at_us = 80});
  EXPECT_EQ(state.lost_since_us(), 80);
}

TEST(JobState, NobodyTellsAnythingOnceNodeZeroIsLost) {
  JobState state(3);
  state.add({.kind = Kind::kEnded, .node = 0});
  state.add({.kind = Kind::kEnded, .node = 1});
  EXPECT_FALSE(state.over());
  state.add({.kind = Kind::kLost, .node = 0});  // the journal was there
  EXPECT_EQ(state.lost_nodes(), std::vector<int>{0});
  EXPECT_TRUE(state.over());
  EXPECT_EQ(state.awaited(), std::vector<int>{2});
  JobState done(2);
  done.add({.kind = Kind::kEnded, .node = 0});
  done.add({.kind = Kind::kEnded, .node = 1});
  done.add({.kind = Kind::kLost, .node = 0});  // it had every right to go
  EXPECT_FALSE(done.stopping());
}

TEST(JobState, AFailedStartIsOverWhenNodeZeroHasDecided) {
  JobState state(2);
  state.add({.kind = Kind::kFailed, .node = 1, .ends = {end(1, 9, 1)}});
  state.add({.kind = Kind::kEnded, .node = 1, .ends = {end(1, 9, 1)}});
  EXPECT_FALSE(state.undecided());
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {end(0, 143, 2, true)}});
  EXPECT_TRUE(state.undecided());
  EXPECT_TRUE(state.may_restart());
  EXPECT_FALSE(state.over());
  state.add({.kind = Kind::kDecided, .wait_ms = 500});
  EXPECT_TRUE(state.over());
  EXPECT_EQ(state.decision()->wait_ms, 500);
  state.begin(1);
  EXPECT_FALSE(state.stopping() || state.over() || state.decision() || state.first_failure());
}

TEST(JobState, WhatWasToldOfTheNextStartWaitsForIt) {
  JobState state(2);
  state.add({.kind = Kind::kFailed, .node = 0, .restart = 1, .ends = {end(0, 3, 9)}});
  state.add({.kind = Kind::kEnded, .node = 0, .restart = 1, .ends = {end(0, 3, 9)}});
  EXPECT_FALSE(state.stopping());
  state.begin(1);
  EXPECT_TRUE(state.stopping());
  EXPECT_EQ(state.first_failure()->rank, 0);
  EXPECT_EQ(state.awaited(), std::vector<int>{1});
  state.add({.kind = Kind::kFailed, .node = 1, .restart = 0});
  state.begin(2);
  EXPECT_FALSE(state.stopping());
}

TEST(JobState, ALossAndAnInterruptionConcernEveryStart) {
  JobState state(3);
  state.add({.kind = Kind::kFailed, .node = 1, .ends = {end(1, 9, 1)}});
  state.add({.kind = Kind::kEnded, .node = 1, .ends = {end(1, 9, 1)}});
  state.add({.kind = Kind::kLost, .node = 1});  // after it had told its end
  EXPECT_TRUE(state.lost_nodes().empty());
  EXPECT_FALSE(state.may_restart());
  state.begin(1);
  EXPECT_TRUE(state.stopping());
  EXPECT_EQ(state.lost_nodes(), std::vector<int>{1});
  JobState told(2);
  told.add({.kind = Kind::kInterrupted, .node = 1, .restart = 0, .signal = SIGTERM});
  told.add({.kind = Kind::kInterrupted, .node = 0, .restart = 0, .signal = SIGINT});
  told.begin(1);
  EXPECT_TRUE(told.stopping());
  EXPECT_EQ(told.interrupted_by(), SIGTERM);
}

TEST(JobState, WhatFailsAfterAnInterruptionIsNoCause) {
  JobState state(2);
  state.add({.kind = Kind::kInterrupted, .node = 1, .signal = SIGINT});
  state.add({.kind = Kind::kFailed, .node = 0, .ends = {end(0, 3, 9)}});
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {end(0, 3, 9)}});
  state.add({.kind = Kind::kEnded, .node = 1, .ends = {end(1, 130, 5)}});
  EXPECT_FALSE(state.first_failure());
  EXPECT_TRUE(state.over());
}

TEST(JobState, AFailureToldBeforeItsNodeWasLostIsKept) {
  JobState state(2);
  RankEnd crash = end(1, 0, 5);
  crash.exit.signal = SIGSEGV;
  state.add({.kind = Kind::kFailed, .node = 1, .ends = {crash}});
  state.add({.kind = Kind::kLost, .node = 1});
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {end(0, 1, 9)}});
  ASSERT_TRUE(state.first_failure());
  EXPECT_EQ(state.first_failure()->exit.signal, SIGSEGV);
}

TEST(JobState, WhatWasLeftBehindForbidsARestart) {
  JobState state(1);
  state.add({.kind = Kind::kFailed, .node = 0, .ends = {end(0, 1, 5)}});
  state.add({.kind = Kind::kEnded, .node = 0, .left_behind = true});
  EXPECT_FALSE(state.may_restart());
}

TEST(JobEvent, TravelsAsTextWhateverARankWrote) {
  JobEvent event{
      .kind = Kind::kFailed, .node = 3, .restart = 2, .signal = 0, .ends = {end(5, 9, 1)}};
  event.ends[0].program = "train --lr 1";
  event.ends[0].host = "gpu02";
  event.ends[0].ran = std::chrono::milliseconds(1500);
  event.ends[0].out_of_memory = false;
  event.ends[0].error = ErrorNote{.message = std::string(9000, 'x'), .path = "r/e.json"};
  event.ends[0].last_lines = {"a \"quoted\" line", "bytes \xff\xfe"};
  const JobEvent back = JobEvent::from_json(event.to_json());
  EXPECT_EQ(back.kind, Kind::kFailed);
  EXPECT_EQ(back.node, 3);
  EXPECT_EQ(back.restart, 2);
  ASSERT_EQ(back.ends.size(), 1U);
  EXPECT_EQ(back.ends[0].exit.code, 9);
  EXPECT_EQ(back.ends[0].program, "train --lr 1");
  EXPECT_EQ(back.ends[0].host, "gpu02");
  EXPECT_EQ(back.ends[0].ran, std::chrono::milliseconds(1500));
  EXPECT_EQ(back.ends[0].turn, 1);
  EXPECT_EQ(back.ends[0].out_of_memory, false);
  ASSERT_TRUE(back.ends[0].error);
  EXPECT_EQ(back.ends[0].error->message.size(), 4096U);
  EXPECT_EQ(back.ends[0].error->path, "r/e.json");
  EXPECT_EQ(back.ends[0].last_lines[0], "a \"quoted\" line");
  EXPECT_THROW((void)JobEvent::from_json("{"), RendezvousError);
}

}  // namespace
}  // namespace argosy::launch
