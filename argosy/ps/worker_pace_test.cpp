#include "argosy/ps/worker_pace.h"

#include <limits>

#include <gtest/gtest.h>

namespace argosy::ps {
namespace {

void push(WorkerPace& pace, size_t worker, int times) {
  for (int i = 0; i < times; ++i) {
    pace.count(worker);
  }
}

TEST(WorkerPace, IsThatOfTheSlowest) {
  WorkerPace pace(3);
  EXPECT_TRUE(pace.none_has_pushed());
  push(pace, 0, 5);
  push(pace, 1, 3);
  EXPECT_EQ(pace.slowest(), 0U);
  EXPECT_TRUE(pace.is_slowest(2));
  push(pace, 2, 4);
  EXPECT_EQ(pace.slowest(), 3U);
  EXPECT_TRUE(pace.is_slowest(1));
  EXPECT_FALSE(pace.none_has_pushed());
}

TEST(WorkerPace, NobodyWaitsForOneThatIsGoneNorForItsReturn) {
  WorkerPace pace(2);
  push(pace, 0, 3);
  push(pace, 1, 2);
  pace.excuse(1);
  EXPECT_EQ(pace.slowest(), 3U);
  push(pace, 0, 500);
  pace.count(1);  // it was started again
  EXPECT_EQ(pace.pushes_of(1), 3U);
  EXPECT_EQ(pace.slowest(), 503U) << "as if it had pushed as often as the others";
  push(pace, 0, 10);
  EXPECT_EQ(pace.slowest(), 503U) << "and from then on it counts";
  EXPECT_TRUE(pace.is_slowest(1));
}

TEST(WorkerPace, AHeadStartIsPassedOnAndNeverLost) {
  WorkerPace primary(2);
  push(primary, 0, 1);
  primary.excuse(1);
  push(primary, 0, 99);
  primary.count(1);
  EXPECT_EQ(primary.head_start_of(1), 99U);
  WorkerPace backup(2);
  push(backup, 0, 100);
  backup.count(1);
  EXPECT_EQ(backup.slowest(), 1U);
  backup.give_head_start(1, primary.head_start_of(1));
  EXPECT_EQ(backup.slowest(), 100U);
  backup.give_head_start(1, 0);
  primary.excuse(0);
  primary.excuse(1);
  primary.count(1);  // while all others are gone
  EXPECT_EQ(primary.head_start_of(1) + backup.head_start_of(1), 198U);
}

TEST(WorkerPace, SaysHowFarWorkersAreApart) {
  WorkerPace pace(3);
  EXPECT_EQ(pace.apart(), 0U);
  push(pace, 0, 7);
  push(pace, 1, 5);
  EXPECT_EQ(pace.apart(), 7U) << "the third has not pushed";
  pace.excuse(2);
  EXPECT_EQ(pace.apart(), 2U);
  pace.count(2);  // it is back, with a head start
  EXPECT_EQ(pace.apart(), 2U);
  pace.excuse(0);
  pace.excuse(1);
  pace.excuse(2);
  EXPECT_EQ(pace.apart(), 0U);
}

TEST(WorkerPace, WhereAllAreGoneNobodyIsSlow) {
  WorkerPace pace(1);
  pace.excuse(0);
  EXPECT_EQ(pace.slowest(), std::numeric_limits<uint64_t>::max());
  pace.count(0);
  EXPECT_EQ(pace.slowest(), 1U);
}

}  // namespace
}  // namespace argosy::ps
