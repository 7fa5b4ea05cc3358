#include "argosy/engine/named_draw.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

std::vector<float> drawn(const NormalDraw& draw, int64_t first, std::size_t count) {
  std::vector<float> values(count);
  draw_normal(draw, first, values);
  return values;
}

TEST(NamedDraw, APartHasTheBitsOfTheWhole) {
  const NormalDraw draw{.seed = 7, .name = "blocks.0.mlp.up.weight", .standard_deviation = 0.02};
  const std::vector<float> whole = drawn(draw, 0, 1001);
  for (const std::size_t first : {0U, 1U, 2U, 3U, 4U, 517U, 998U}) {
    for (const std::size_t count : {0U, 1U, 2U, 3U}) {
      const std::vector<float> part = drawn(draw, static_cast<int64_t>(first), count);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(part[i], whole[first + i]) << first << " " << i;
      }
    }
  }
  // Beyond what 32 bits count, and without an error at the end of the numbers.
  const int64_t far = (int64_t{1} << 40) + 3;
  EXPECT_EQ(drawn(draw, far, 6)[5], drawn(draw, far + 5, 1)[0]);
}

TEST(NamedDraw, SeedAndNameDecide) {
  const std::vector<float> one = drawn({.seed = 1, .name = "a"}, 0, 64);
  EXPECT_EQ(one, drawn({.seed = 1, .name = "a"}, 0, 64));
  for (const NormalDraw& other : {NormalDraw{.seed = 2, .name = "a"},
                                  NormalDraw{.seed = 1, .name = "b"},
                                  NormalDraw{.seed = (uint64_t{1} << 32) + 1, .name = "a"}}) {
    const std::vector<float> two = drawn(other, 0, 64);
    double product = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_NE(one[i], two[i]);
      product += static_cast<double>(one[i]) * static_cast<double>(two[i]);
    }
    EXPECT_LT(std::abs(product), 5 * 8);  // five deviations of a sum of 64 such products
  }
}

TEST(NamedDraw, IsNormal) {
  const std::vector<float> values =
      drawn({.seed = 3, .name = "x", .standard_deviation = 2}, 0, 400000);
  double sum = 0, square = 0, fourth = 0;
  std::vector<double> beyond(4);
  for (const float value : values) {
    const double z = static_cast<double>(value) / 2;
    sum += z;
    square += z * z;
    fourth += z * z * z * z;
    for (std::size_t k = 0; k < beyond.size(); ++k) {
      beyond[k] += z > static_cast<double>(k) - 1.5 ? 1 : 0;
    }
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 0.008);
  EXPECT_NEAR(square / count, 1, 0.012);
  EXPECT_NEAR(fourth / count, 3, 0.08);
  for (std::size_t k = 0; k < beyond.size(); ++k) {
    const double expected = std::erfc((static_cast<double>(k) - 1.5) / std::sqrt(2.0)) / 2;
    EXPECT_NEAR(beyond[k] / count, expected, 0.004) << k;
  }
}

// The bits are part of the contract: a run that begins anew elsewhere starts with the same weights.
// A program of its own in Python made the values, after it had met Random123's known answers.
TEST(NamedDraw, TheBitsAreKnown) {
  const std::vector<float> values = drawn({.seed = 42, .name = "embed.weight"}, 0, 4);
  EXPECT_EQ(values,
            (std::vector<float>{-0x1.0f510c0000000p+1F,
                                0x1.bf134c0000000p-2F,
                                -0x1.7533640000000p+0F,
                                0x1.09fb820000000p-1F}));
}

TEST(NamedDraw, UniformNumbersFillTheRange) {
  double sum = 0, least = 1, most = 0;
  constexpr int64_t kCount = 10000;
  for (int64_t i = 0; i < kCount; ++i) {
    const double value = draw_uniform(5, "sample", i);
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.015);
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_LT(least, 0.002);
  EXPECT_GT(most, 0.998);
  EXPECT_EQ(draw_uniform(5, "sample", 17), draw_uniform(5, "sample", 17));
  EXPECT_NE(draw_uniform(5, "sample", 17), draw_uniform(6, "sample", 17));
}

TEST(NamedDraw, RefusesWhatIsNegative) {
  std::vector<float> values(1);
  EXPECT_THROW(draw_normal({}, -1, values), UsageError);
  EXPECT_THROW(draw_normal({.standard_deviation = -1}, 0, values), UsageError);
  EXPECT_THROW((void)draw_uniform(1, "a", -1), UsageError);
}

}  // namespace
}  // namespace argosy::engine
