#include "argosy/transport/gloo/greeting.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::transport {
namespace {

using ::testing::HasSubstr;

/// Lets both ends speak until neither has anything to say.
void talk(Greeting& caller, Greeting& called) {
  for (std::string words = caller.speak(); !words.empty();) {
    called.hear(words);
    caller.hear(called.speak());
    words = caller.speak();
  }
}

TEST(GreetingOfRanks, WhoKnowTheKeyIsProvenOnBothSides) {
  Greeting caller = Greeting::calling(2, 1, "key of rank 1");
  Greeting called = Greeting::called(1, 4, "key of rank 1");
  talk(caller, called);
  EXPECT_TRUE(caller.proven());
  EXPECT_TRUE(called.proven());
  EXPECT_EQ(called.peer(), 2);
  EXPECT_EQ(caller.wants() + called.wants(), 0);
}

TEST(GreetingOfRanks, ACalledOneWithAnotherKeyIsRefusedBeforeItHearsAProof) {
  Greeting caller = Greeting::calling(2, 1, "key of rank 1");
  Greeting called = Greeting::called(1, 4, "key of rank 9");
  called.hear(caller.speak());
  caller.hear(called.speak());
  EXPECT_TRUE(caller.refused());
  EXPECT_EQ(caller.speak(), "");
  EXPECT_THAT(caller.verdict(), HasSubstr("does not know the job's secret"));
}

TEST(GreetingOfRanks, ACallerWithAnotherKeyIsRefused) {
  // Its answer is checked by one that does not look at that of the other end.
  Greeting honest = Greeting::calling(2, 1, "key of rank 1");
  Greeting called = Greeting::called(1, 4, "key of rank 1");
  called.hear(honest.speak());
  (void)called.speak();
  called.hear(std::string(called.wants(), '0'));
  EXPECT_TRUE(called.refused());
  EXPECT_EQ(called.speak(), "") << "no welcome";
  EXPECT_THAT(called.verdict(), HasSubstr("does not know the job's secret"));
}

TEST(GreetingOfRanks, WhatWasHeardOfAnotherConnectionProvesNothing) {
  Greeting caller = Greeting::calling(2, 1, "key");
  Greeting called = Greeting::called(1, 4, "key");
  const std::string hello = caller.speak();
  called.hear(hello);
  const std::string answer = called.speak();
  caller.hear(answer);
  const std::string proof = caller.speak();

  Greeting again = Greeting::called(1, 4, "key");  // it draws another nonce
  again.hear(hello);
  (void)again.speak();
  again.hear(proof);
  EXPECT_TRUE(again.refused());

  Greeting other = Greeting::calling(2, 1, "key");
  (void)other.speak();
  other.hear(answer);
  EXPECT_TRUE(other.refused());

  Greeting mirrored = Greeting::called(1, 4, "key");  // its own words are no proof
  mirrored.hear(hello);
  const std::string own = mirrored.speak();
  mirrored.hear(std::string_view(own).substr(own.size() - mirrored.wants()));
  EXPECT_TRUE(mirrored.refused());
}

TEST(GreetingOfRanks, WhoNamesAnotherPlaceIsRefused) {
  for (const auto& [caller, called] : {std::pair(4, 1), {1, 1}, {0, 1}, {2, 3}}) {
    Greeting stranger = Greeting::calling(caller, called, "key");
    Greeting mine = Greeting::called(1, 4, "key");
    mine.hear(stranger.speak());
    EXPECT_TRUE(mine.refused()) << caller << " calls " << called;
    EXPECT_EQ(mine.speak(), "");
  }
}

}  // namespace
}  // namespace argosy::transport
