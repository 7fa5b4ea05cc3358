#include "argosy/base/exact_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace argosy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) {
    sum.add(value);
  }
  return sum.value();
}

TEST(ExactSum, LosesNothing) {
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({-0.0}), 0);
  EXPECT_EQ(sum_of({1e30, 1, -1e30}), 1);
  EXPECT_EQ(sum_of({kMost, kLeast, -kMost}), kLeast);
  EXPECT_EQ(sum_of({kMost, kMost, -kMost}), kMost) << "goes beyond the largest double and back";
  EXPECT_EQ(sum_of({kMost, kMost}), kInfinity);
  EXPECT_EQ(sum_of({-kMost, -kMost}), -kInfinity);
  EXPECT_EQ(sum_of(std::vector<double>(10, 0.1)), 1.0) << "ten times the double next to 0.1";
  EXPECT_EQ(sum_of({-1.5, -kLeast}), -1.5);
  EXPECT_EQ(sum_of({kLeast, kLeast, -3 * kLeast}), -kLeast);
  for (const double value : {1.0, -3.7e-310, 1.5e308, 1e-200, -0x1.fffffffffffffp+52}) {
    EXPECT_EQ(sum_of({value}), value);
  }
}

TEST(ExactSum, RoundsOnceToEven) {
  const double one_up = std::nextafter(1.0, 2.0), half = 0x1p-53;
  EXPECT_EQ(sum_of({1, half}), 1);
  EXPECT_EQ(sum_of({1, half, 0x1p-1074}), one_up) << "just above the middle";
  EXPECT_EQ(sum_of({one_up, half}), std::nextafter(one_up, 2.0));
  EXPECT_EQ(sum_of({-1, -half, -0x1p-500}), -one_up);
  EXPECT_EQ(sum_of({2, -half}), 2);
}

TEST(ExactSum, KeepsWhatIsNoNumber) {
  EXPECT_TRUE(std::isnan(sum_of({1, kNan})));
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity})));
  EXPECT_EQ(sum_of({kInfinity, 1, kInfinity}), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, 1e308}), -kInfinity);
}

/// In any order and dealt to any number of processes, against integers of 128 bits.
TEST(ExactSum, IsTheSameHoweverItIsDealt) {
  __extension__ using Wide = __int128;
  std::mt19937_64 draw(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values;
    Wide exact = 0;  // in units of 2^-30
    for (int i = 0; i < 100; ++i) {
      const auto mantissa = static_cast<int64_t>(draw() >> 11U) * (draw() % 2 == 0 ? 1 : -1);
      const auto shift = static_cast<unsigned>(draw() % 60);
      values.push_back(std::ldexp(static_cast<double>(mantissa), static_cast<int>(shift) - 30));
      exact += static_cast<Wide>(mantissa) * (static_cast<Wide>(1) << shift);
    }
    const double wanted = std::ldexp(static_cast<double>(exact), -30);
    ASSERT_EQ(sum_of(values), wanted) << round;
    std::ranges::shuffle(values, draw);
    const std::size_t processes = 1 + draw() % 7;
    std::vector<ExactSum> parts(processes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      parts[i % processes].add(values[i]);
    }
    std::array<int64_t, ExactSum::kNumbers> numbers{};
    ExactSum merged;
    for (const ExactSum& part : parts) {
      const auto theirs = part.numbers();
      std::ranges::transform(numbers, theirs, numbers.begin(), std::plus<>());
      merged.add(part);
    }
    ASSERT_EQ(ExactSum::from(numbers).value(), wanted) << round;
    ASSERT_EQ(merged.value(), wanted) << round;
  }
}

}  // namespace
}  // namespace argosy
