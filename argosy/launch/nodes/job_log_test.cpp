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

RemoteEnd end(int rank, int code, int64_t at_us, bool asked = false) {
  return {.rank = rank, .pid = 100 + rank, .code = code, .at_us = at_us, .asked_to_stop = asked};
}

TEST(JobState, IsOverWhenEveryNodeHasEnded) {
  JobState state(2, 0);
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
  JobState state(2, 0);
  state.add({.kind = Kind::kFailed, .node = 0, .ends = {end(1, 1, 2000)}});
  EXPECT_TRUE(state.stopping());
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {end(1, 1, 2000), end(0, 143, 2500, true)}});
  RemoteEnd killed = end(3, 0, 2400);  // seen a moment after the reaction to it
  killed.signal = SIGKILL;
  state.add({.kind = Kind::kEnded, .node = 1, .ends = {end(2, 7, 9000), killed}});
  ASSERT_TRUE(state.first_failure());
  EXPECT_EQ(state.first_failure()->rank, 3);
  std::vector<int> others;
  for (const RemoteEnd& other : state.others()) {
    others.push_back(other.rank);
  }
  EXPECT_EQ(others, (std::vector<int>{1, 0, 2}));
}

TEST(JobState, AnOlderDeathIsTheCauseNotALaterOne) {
  JobState state(1, 0);
  RemoteEnd late = end(0, 0, 50'000);
  late.signal = SIGSEGV;
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {late, end(1, 3, 1000)}});
  EXPECT_EQ(state.first_failure()->rank, 1);
}

TEST(JobState, ALostNodeStopsAllAndEndsNothingTwice) {
  JobState state(3, 0);
  state.add({.kind = Kind::kEnded, .node = 2, .ends = {}});
  state.add({.kind = Kind::kLost, .node = 2});  // it had nothing left to say
  EXPECT_FALSE(state.stopping());
  state.add({.kind = Kind::kLost, .node = 1, .restart = 7});  // whenever it was noticed
  state.add({.kind = Kind::kLost, .node = 1});
  EXPECT_TRUE(state.stopping());
  EXPECT_EQ(state.lost_nodes(), std::vector<int>{1});
  EXPECT_FALSE(state.over());
  state.add({.kind = Kind::kEnded, .node = 0, .ends = {}});
  EXPECT_TRUE(state.over());
}

TEST(JobState, EventsOfAnotherStartAreLeftAside) {
  JobState state(2, 1);
  state.add({.kind = Kind::kFailed, .node = 0, .restart = 0});
  state.add({.kind = Kind::kEnded, .node = 0, .restart = 0});
  EXPECT_FALSE(state.stopping());
  state.add({.kind = Kind::kInterrupted, .node = 1, .restart = 1, .signal = SIGTERM});
  EXPECT_EQ(state.interrupted_by(), SIGTERM);
  EXPECT_FALSE(state.over());
}

TEST(JobEvent, TravelsAsTextWhateverARankWrote) {
  JobEvent event{
      .kind = Kind::kFailed, .node = 3, .restart = 2, .signal = 0, .ends = {end(5, 9, 1)}};
  event.ends[0].last_lines = {"a \"quoted\" line", "bytes \xff\xfe"};
  const JobEvent back = JobEvent::from_json(event.to_json());
  EXPECT_EQ(back.kind, Kind::kFailed);
  EXPECT_EQ(back.node, 3);
  EXPECT_EQ(back.restart, 2);
  ASSERT_EQ(back.ends.size(), 1U);
  EXPECT_EQ(back.ends[0].code, 9);
  EXPECT_EQ(back.ends[0].last_lines[0], "a \"quoted\" line");
  EXPECT_THROW((void)JobEvent::from_json("{"), RendezvousError);
}

}  // namespace
}  // namespace argosy::launch
