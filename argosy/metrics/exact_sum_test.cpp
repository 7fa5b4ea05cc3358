#include "argosy/metrics/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::metrics {
namespace {

double sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) {
    sum.add(term);
  }
  return sum.value();
}

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(ExactSum, OneTermComesBackUnchanged) {
  for (const double x : {0.0, 1.0, -1.0, 0.1, -1e300, 1e-300, kMax, -kMax, kTiny, -kTiny, 3e-310}) {
    EXPECT_EQ(sum_of({x}), x);
  }
  EXPECT_EQ(sum_of({}), 0.0);
}

TEST(ExactSum, LosesNothingToCancellation) {
  EXPECT_EQ(sum_of({1e300, 1.0, -1e300}), 1.0);
  EXPECT_EQ(sum_of({kMax, kTiny, -kMax}), kTiny);
  EXPECT_EQ(sum_of({-1e16, 1.0, 1e16, -1.0}), 0.0);
  EXPECT_EQ(sum_of({kMax, kMax, -kMax}), kMax);  // over the top and back
  EXPECT_EQ(sum_of({kMax, kMax}), kInfinite);
}

TEST(ExactSum, RoundsToNearestEvenOnce) {
  const double ulp = std::ldexp(1.0, -52);
  EXPECT_EQ(sum_of({1.0, ulp / 2}), 1.0);                      // a tie: to even
  EXPECT_EQ(sum_of({1.0, ulp / 2, kTiny}), 1.0 + ulp);         // above the tie
  EXPECT_EQ(sum_of({1.0 + ulp, ulp / 2}), 1.0 + 2 * ulp);      // a tie: to even, upwards
  EXPECT_EQ(sum_of({1.0 + ulp, ulp / 2, -kTiny}), 1.0 + ulp);  // below the tie
  EXPECT_EQ(sum_of({-1.0, -ulp / 2, -kTiny}), -(1.0 + ulp));   // the same for negative sums
  EXPECT_EQ(sum_of(std::vector<double>(10, 0.1)), 1.0);        // a plain loop gives 0.999…
}

TEST(ExactSum, AgreesWithIntegersAtEveryScale) {
  std::mt19937_64 random(1);
  for (const int scale : {-1074, -1040, -600, -33, -32, -31, 0, 31, 500, 940}) {
    __int128 expected = 0;
    ExactSum sum;
    for (int i = 0; i < 200; ++i) {
      const auto term = static_cast<int64_t>(random() >> 12) - (int64_t{1} << 51);
      expected += term;
      sum.add(std::ldexp(static_cast<double>(term), scale));
    }
    EXPECT_EQ(sum.value(), std::ldexp(static_cast<double>(expected), scale)) << scale;
  }
}

TEST(ExactSum, TheOrderDoesNotMatter) {
  std::mt19937_64 random(2);
  std::vector<double> terms;
  for (int i = 0; i < 500; ++i) {
    terms.push_back(std::ldexp(std::uniform_real_distribution<>(-1, 1)(random),
                               static_cast<int>(random() % 120)));
  }
  const double forwards = sum_of(terms);
  std::shuffle(terms.begin(), terms.end(), random);
  EXPECT_EQ(sum_of(terms), forwards);
}

TEST(ExactSum, NanAndInfinities) {
  EXPECT_TRUE(std::isnan(sum_of({1.0, std::nan("")})));
  EXPECT_EQ(sum_of({1.0, kInfinite}), kInfinite);
  EXPECT_EQ(sum_of({-kInfinite, 1e300}), -kInfinite);
  EXPECT_TRUE(std::isnan(sum_of({kInfinite, -kInfinite})));
}

TEST(ExactSum, ResetStartsAgain) {
  ExactSum sum;
  sum.add(kInfinite);
  sum.add(3);
  sum.reset();
  sum.add(2);
  EXPECT_EQ(sum.value(), 2);
}

}  // namespace
}  // namespace argosy::metrics
