#include "argosy/metrics/roc.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::metrics {
namespace {

/// By its definition: every pair is looked at.
double counted_pairs(const std::vector<double>& positives, const std::vector<double>& negatives) {
  double won = 0;
  for (const double positive : positives) {
    for (const double negative : negatives) {
      won += positive > negative ? 1 : positive == negative ? 0.5 : 0;
    }
  }
  return won / static_cast<double>(positives.size() * negatives.size());
}

TEST(RocArea, IsTheShareOfPairsInOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const uint64_t different = 1 + random() % 40;  // few scores: many are equal
    std::vector<double> positives;
    std::vector<double> negatives;
    for (uint64_t i = 0, n = 2 + random() % 120; i < n; ++i) {
      const double score = static_cast<double>(random() % different) - 3;
      const bool clicked = i == 0 || (i != 1 && random() % 3 == 0);
      const double better = clicked ? 0.5 * static_cast<double>(seed % 3) : 0;
      (clicked ? positives : negatives).push_back(score + better);
    }
    EXPECT_NEAR(roc_area(positives, negatives), counted_pairs(positives, negatives), 1e-12);
  }
}

TEST(RocArea, OfInfiniteScoresAndOfOneClass) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(roc_area({kInfinite, 1}, {-kInfinite, 0}), 1);
  EXPECT_EQ(roc_area({-kInfinite}, {-kInfinite}), 0.5);
  EXPECT_EQ(roc_area({0, 1}, {2}), 0);
  EXPECT_TRUE(std::isnan(roc_area({1, 2}, std::vector<double>())));
  EXPECT_TRUE(std::isnan(roc_area(std::vector<double>(), {1.0})));
}

}  // namespace
}  // namespace argosy::metrics
