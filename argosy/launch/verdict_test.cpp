#include "argosy/launch/verdict.h"

#include <signal.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using testing::ElementsAre;

RankEnd end(int rank, int code, int signal = 0) {
  return {.rank = rank, .exit = {code, signal}};
}

std::vector<int> ranks(const std::vector<RankEnd>& ends) {
  std::vector<int> numbers;
  for (const RankEnd& each : ends) {
    numbers.push_back(each.rank);
  }
  return numbers;
}

TEST(Verdict, TheFirstFailureIsKeptApart) {
  Verdict verdict;
  EXPECT_FALSE(verdict.add({end(4, 0)}, false));
  EXPECT_TRUE(verdict.add({end(1, 1), end(3, 0, SIGSEGV)}, false));
  EXPECT_FALSE(verdict.add({end(0, 1), end(2, 0, SIGKILL)}, true));
  EXPECT_EQ(verdict.first()->rank, 3);
  EXPECT_THAT(ranks(verdict.others()), ElementsAre(4, 1, 0, 2));
}

TEST(Verdict, WhatEndsAfterASignalIsNoCause) {
  Verdict verdict;
  EXPECT_FALSE(verdict.add({end(0, 130)}, true));
  EXPECT_FALSE(verdict.first().has_value());
  EXPECT_THAT(ranks(verdict.others()), ElementsAre(0));
}

}  // namespace
}  // namespace argosy::launch
