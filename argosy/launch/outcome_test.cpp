#include "argosy/launch/outcome.h"

#include <signal.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/exit_codes.h"

namespace argosy::launch {
namespace {

using Kind = JobEvent::Kind;
using testing::HasSubstr;

RankEnd end(int rank, os::Exit exit, int64_t at_us = 0, std::string last_words = "") {
  return {.rank = rank,
          .node = rank / 2,
          .exit = exit,
          .at_us = at_us,
          .turn = at_us,
          .last_lines = {"said by " + std::to_string(rank)},
          .last_words = std::move(last_words)};
}

/// Two nodes of two ranks.
JobPlan plan() {
  return {.nodes = {{.host = "a", .address = "10.0.0.1"},
                    {.host = "b", .address = "10.0.0.2", .first_rank = 2}}};
}

JobState told(int nodes, const std::vector<JobEvent>& events) {
  JobState state(nodes);
  for (const JobEvent& event : events) {
    state.add(event);
  }
  return state;
}

TEST(Outcome, OfOneNodeIsThatOfItsFirstFailure) {
  const RankEnd first = end(1, {.code = 3}, 5000);
  const JobState job = told(1,
                            {{.kind = Kind::kFailed, .ends = {first}},
                             {.kind = Kind::kEnded, .ends = {first, end(0, {.code = 0}, 1)}},
                             {.kind = Kind::kDecided, .wait_ms = 500, .text = "restart 1 of 2"}});
  const Outcome outcome = outcome_of(job, {}, {.host = "here"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.restart_after, std::chrono::milliseconds(500));
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->host, "here");
  EXPECT_THAT(outcome.words, HasSubstr("said by 1"));
  EXPECT_THAT(outcome.words, HasSubstr("restart 1 of 2"));
  const Outcome undying = outcome_of(job, {}, {.left_behind = {"pid 4"}, .undying = true});
  EXPECT_FALSE(undying.restart_after);
  EXPECT_EQ(undying.left_behind, std::vector<std::string>{"pid 4"});
}

TEST(Outcome, OfAnInterruptedJobIsTheSignal) {
  const JobState job = told(1,
                            {{.kind = Kind::kInterrupted, .signal = SIGINT},
                             {.kind = Kind::kEnded, .ends = {end(0, {.signal = SIGINT})}}});
  const Outcome outcome = outcome_of(job, {}, {});
  EXPECT_EQ(outcome.exit_code, 128 + SIGINT);
  EXPECT_EQ(outcome.signal, SIGINT);
  EXPECT_EQ(outcome.words, "[launch] stopped by SIGINT; exit code 130\n");
}

TEST(Outcome, OfRanksThatHaveSavedIsToResume) {
  const JobState job =
      told(1, {{.kind = Kind::kEnded, .ends = {end(0, {.code = kResumeExitCode}), end(1, {})}}});
  EXPECT_EQ(outcome_of(job, {}, {}).exit_code, kResumeExitCode);
  EXPECT_EQ(outcome_of(job, {}, {.undying = true}).exit_code, 1);
}

TEST(Outcome, TheSameWordsOfAllNodesAreNotRepeated) {
  const auto outcome = [&](const char* last) {
    const RankEnd first = end(2, {.code = 3}, 10, "no such folder");
    return outcome_of(
        told(2,
             {{.kind = Kind::kFailed, .node = 1, .ends = {first}},
              {.kind = Kind::kEnded, .node = 1, .ends = {first}},
              {.kind = Kind::kEnded, .node = 0, .ends = {end(0, {.code = 3}, 20, last)}},
              {.kind = Kind::kDecided, .text = "exit code 3"}}),
        plan(),
        {});
  };
  EXPECT_THAT(outcome("no such folder").words, HasSubstr("all 2 ranks ended with the same words"));
  EXPECT_THAT(outcome("another").words, HasSubstr("said by 2"));
  EXPECT_THAT(outcome("").words, HasSubstr("said by 2"));
}

TEST(Outcome, WhatRanksSayOfALostNodeIsAConsequence) {
  const auto outcome = [&](const RankEnd& first) {
    return outcome_of(told(2,
                           {{.kind = Kind::kFailed, .node = 0, .ends = {first}},
                            {.kind = Kind::kLost, .node = 1, .at_us = 3'000'000},
                            {.kind = Kind::kEnded, .node = 0, .ends = {first}}}),
                      plan(),
                      {});
  };
  const Outcome consequence = outcome(end(0, {.code = 7}, 2'900'000));
  EXPECT_EQ(consequence.exit_code, 1);
  EXPECT_FALSE(consequence.failure);
  EXPECT_THAT(consequence.words, HasSubstr("node 1 (b, 10.0.0.2): its launcher was killed"));
  EXPECT_THAT(consequence.words, HasSubstr("around the same time, rank 0"));
  EXPECT_EQ(outcome(end(0, {.code = 7}, 1'000'000)).exit_code, 7) << "long before";
  EXPECT_EQ(outcome(end(0, {.signal = SIGSEGV}, 2'900'000)).exit_code, 139);
}

}  // namespace
}  // namespace argosy::launch
