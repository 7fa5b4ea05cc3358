#include "argosy/runs/curve.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::runs {
namespace {

TEST(BoundedCurve, KeepsFewPointsAsTheyAre) {
  BoundedCurve curve;
  for (int i = 0; i < 1000; ++i) {
    curve.add(10 * i, 0.5 * i);
  }
  ASSERT_EQ(curve.pieces().size(), 1000U);
  EXPECT_EQ(curve.pieces()[7].last_x, 70);
  EXPECT_EQ(curve.pieces()[7].mean(), 3.5);
  EXPECT_EQ(curve.pieces()[7].count, 1);
}

TEST(BoundedCurve, IsBoundedAndLosesNoSpike) {
  BoundedCurve curve;
  const int many = 1'000'003;
  for (int i = 0; i < many; ++i) {
    curve.add(i, i == 123'456 ? 1e9 : i == 654'321 ? -1e9 : std::sin(i * 1e-5));
  }
  EXPECT_LE(curve.pieces().size(), BoundedCurve::kMostPieces);
  EXPECT_GE(curve.pieces().size(), BoundedCurve::kMostPieces / 4);
  int64_t count = 0;
  double before = -1;
  for (const CurvePiece& piece : curve.pieces()) {
    count += piece.count;
    EXPECT_EQ(piece.first_x, before + 1);
    EXPECT_GE(piece.mean(), piece.low.y);
    EXPECT_LE(piece.mean(), piece.high.y);
    before = piece.last_x;
  }
  EXPECT_EQ(count, many);
  EXPECT_EQ(before, many - 1);
  EXPECT_EQ(curve.highest().x, 123'456);
  EXPECT_EQ(curve.lowest().x, 654'321);
  EXPECT_EQ(curve.last().x, many - 1);
}

TEST(BoundedCurve, AResumedRunReplacesTheStepsThatItGoesOverAgain) {
  BoundedCurve curve;
  for (int i = 0; i < 70; ++i) {
    curve.add(i, 1);
  }
  for (int i = 50; i < 60; ++i) {
    curve.add(i, 2);
  }
  ASSERT_EQ(curve.pieces().size(), 60U);
  EXPECT_EQ(curve.pieces()[49].mean(), 1);
  EXPECT_EQ(curve.pieces()[50].mean(), 2);
  EXPECT_EQ(curve.pieces()[59].last_x, 59);
}

TEST(BoundedCurve, CountsWhatIsNoNumber) {
  BoundedCurve curve;
  curve.add(1, 0.5);
  curve.add(2, std::numeric_limits<double>::quiet_NaN());
  curve.add(3, std::numeric_limits<double>::infinity());
  curve.add(std::numeric_limits<double>::quiet_NaN(), 1);
  EXPECT_EQ(curve.pieces().size(), 1U);
  EXPECT_EQ(curve.odd(), 2);
  EXPECT_EQ(curve.first_odd(), 2);
}

}  // namespace
}  // namespace argosy::runs
