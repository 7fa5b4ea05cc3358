#include "argosy/data/random.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::data {
namespace {

TEST(Random, TheStreamIsFixedForEver) {
  // Computed by an independent transcription of SplitMix64's finaliser and xoshiro256** in Python.
  Random random(1, 2, 3);
  EXPECT_EQ(random(), 0x230e39ea7df97169ULL);
  EXPECT_EQ(random(), 0xec7b960f50abe013ULL);
  EXPECT_EQ(random(), 0x6a5142b0bb78a4e5ULL);
}

TEST(Random, EachKeyChangesTheStream) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t epoch = 0; epoch < 10; ++epoch) {
      for (int64_t index = 0; index < 100; ++index) {
        first.insert(Random(seed, epoch, index)());
      }
    }
  }
  EXPECT_EQ(first.size(), 10'000U);
}

/// Mean of f over first draws of neighbouring streams: where weak seeding shows.
template <typename F>
double mean_over_streams(F f) {
  double sum = 0;
  constexpr int kStreams = 100'000;
  for (int i = 0; i < kStreams; ++i) {
    Random random(0, 0, i);
    sum += f(random);
  }
  return sum / kStreams;
}

TEST(Random, NeighbouringStreamsAreUniformAndUncorrelated) {
  // The standard deviation of the mean of 100,000 is 0.0009; five of them.
  EXPECT_NEAR(mean_over_streams([](Random& r) { return r.uniform(); }), 0.5, 0.0046);
  EXPECT_NEAR(mean_over_streams([](Random& r) { return r.uniform(2, 4); }), 3, 0.0092);
  EXPECT_NEAR(mean_over_streams([](Random& r) { return r.bernoulli(0.25) ? 1 : 0; }), 0.25, 0.0069);
  EXPECT_NEAR(mean_over_streams([last = 0.0](Random& r) mutable {
                const double now = r.uniform() - 0.5;
                return std::exchange(last, now) * now;
              }),
              0,
              0.0014);
}

TEST(Random, NormalHasItsMoments) {
  EXPECT_NEAR(mean_over_streams([](Random& r) { return r.normal(); }), 0, 0.016);
  EXPECT_NEAR(mean_over_streams([](Random& r) { return std::pow(r.normal(), 2); }), 1, 0.023);
  EXPECT_NEAR(mean_over_streams([](Random& r) { return std::pow(r.normal(), 4); }), 3, 0.16);
  EXPECT_NEAR(mean_over_streams([](Random& r) { return r.normal(5, 2); }), 5, 0.032);
}

TEST(Random, IntegersCoverBothEndsEvenly) {
  std::vector<int> count(6);
  for (int i = 0; i < 60'000; ++i) {
    ++count.at(Random(7, 0, i).integer(-2, 3) + 2);
  }
  for (const int c : count) {
    EXPECT_NEAR(c, 10'000, 5 * 92);
  }
}

TEST(Random, IntegerAtTheEdges) {
  Random random(0, 0, 0);
  EXPECT_EQ(random.integer(5, 5), 5);
  for (int i = 0; i < 100; ++i) {
    EXPECT_GE(random.integer(INT64_MAX - 1, INT64_MAX), INT64_MAX - 1);
    (void)random.integer(INT64_MIN, INT64_MAX);
  }
  EXPECT_THROW((void)random.integer(1, 0), UsageError);
}

TEST(Random, AForkDependsOnItsPartAloneNotOnWhatWasDrawn) {
  Random random(1, 2, 3);
  const uint64_t first = random.fork(0)();
  static_cast<void>(random());
  static_cast<void>(random.spawn());
  EXPECT_EQ(random.fork(0)(), first);
  EXPECT_NE(random.fork(1)(), first);
  EXPECT_NE(random.fork(1).fork(0)(), random.fork(0).fork(1)());
}

TEST(Random, ForksAndSpawnsDoNotMoveTheStreamItself) {
  Random random(1, 2, 3);
  static_cast<void>(random.fork(7));
  static_cast<void>(random.spawn());
  EXPECT_EQ(random(), 0x230e39ea7df97169ULL);
}

TEST(Random, EachSpawnIsAnotherStreamAndTheSeriesComesAgain) {
  Random random(1, 2, 3);
  const uint64_t first = random.spawn()();
  static_cast<void>(random());
  const uint64_t second = random.spawn()();
  EXPECT_NE(first, second);
  Random again(1, 2, 3);
  EXPECT_EQ(again.spawn()(), first);
  EXPECT_EQ(again.spawn()(), second);
}

TEST(Random, ChildrenOfNeighboursAreUniformAndUnlikeTheirParents) {
  std::set<uint64_t> first;
  for (int64_t index = 0; index < 1000; ++index) {
    Random random(0, 0, index);
    for (uint64_t part = 0; part < 10; ++part) {
      first.insert(random.fork(part)());
      first.insert(random.spawn()());
    }
    first.insert(random());
  }
  EXPECT_EQ(first.size(), 21'000U);
  EXPECT_NEAR(mean_over_streams([](Random& r) { return r.fork(1).uniform(); }), 0.5, 0.0046);
  EXPECT_NEAR(mean_over_streams([](Random& r) {
                return (r.fork(1).uniform() - 0.5) * (r.fork(2).uniform() - 0.5);
              }),
              0,
              0.0014);
}

}  // namespace
}  // namespace argosy::data
