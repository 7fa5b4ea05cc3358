#include "argosy/image/normalize.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::image {
namespace {

constexpr Normalization kImageNet = {.divisor = 255,
                                     .channels = 3,
                                     .mean = {0.485F, 0.456F, 0.406F, 0},
                                     .std = {0.229F, 0.224F, 0.225F, 1}};

std::vector<uint8_t> noise(size_t bytes) {
  std::mt19937 random(7);
  std::vector<uint8_t> values(bytes);
  for (uint8_t& each : values) {
    each = static_cast<uint8_t>(random());
  }
  return values;
}

/// As it is defined: three operations, each rounded.
float defined(const Normalization& wanted, size_t channel, uint8_t value) {
  volatile float x = static_cast<float>(value) / wanted.divisor;
  x = x - wanted.mean[channel];
  x = x / wanted.std[channel];
  return x;
}

void expect_bits(float got, float wanted) {
  EXPECT_EQ(std::memcmp(&got, &wanted, sizeof got), 0) << got << " is not " << wanted;
}

TEST(Normalizer, GivesTheBitsOfTheThreeOperationsInEitherLayout) {
  for (int channels = 1; channels <= 4; ++channels) {
    Normalization wanted = kImageNet;
    wanted.channels = channels;
    const Normalizer normalize(wanted);
    for (const int width : {1, 2, 15, 16, 17, 48, 224, 255, 256, 257, 600}) {
      const auto w = static_cast<size_t>(width);
      const auto c = static_cast<size_t>(channels);
      const std::vector<uint8_t> pixels = noise(w * c);
      std::vector<float> side_by_side(w * c + 1, -7);
      std::vector<float> planes(w * c + 1, -7);
      normalize.row(pixels.data(), width, {.first = side_by_side.data()});
      normalize.row(pixels.data(), width, {.first = planes.data(), .channel_stride = w});
      for (size_t i = 0; i < w * c; ++i) {
        const float value = defined(wanted, i % c, pixels[i]);
        expect_bits(side_by_side[i], value);
        expect_bits(planes[(i % c) * w + i / c], value);
        expect_bits(normalize(static_cast<int>(i % c), pixels[i]), value);
      }
      EXPECT_EQ(side_by_side.back(), -7);
      EXPECT_EQ(planes.back(), -7);
    }
  }
}

TEST(Normalizer, ValuesStayWithoutADivisorMeanAndStd) {
  const Normalizer normalize({.channels = 1});
  const std::vector<uint8_t> pixels = noise(100);
  std::vector<float> out(100);
  normalize.row(pixels.data(), 100, {.first = out.data()});
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(out[i], static_cast<float>(pixels[i]));
  }
}

/// Constants for which the quotient by remainder could be another than the division's: then the
/// table must be used.
TEST(Normalizer, AnyConstantsGiveTheBitsOfADivision) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> exponent(-40, 40);
  std::vector<uint8_t> all(256);
  for (size_t v = 0; v < 256; ++v) {
    all[v] = static_cast<uint8_t>(v);
  }
  for (int i = 0; i < 2000; ++i) {
    const Normalization wanted = {.divisor = std::exp2(exponent(random)),
                                  .channels = 1,
                                  .mean = {exponent(random), 0, 0, 0},
                                  .std = {std::exp2(3 * exponent(random)), 1, 1, 1}};
    const Normalizer normalize(wanted);
    std::vector<float> out(256);
    normalize.row(all.data(), 256, {.first = out.data()});
    for (size_t v = 0; v < 256; ++v) {
      expect_bits(out[v], defined(wanted, 0, all[v]));
    }
  }
}

TEST(Normalizer, RefusesWhatCannotBeDividedBy) {
  EXPECT_THROW(Normalizer({.channels = 0}), UsageError);
  EXPECT_THROW(Normalizer({.channels = 5}), UsageError);
  EXPECT_THROW(Normalizer({.divisor = 0, .channels = 1}), UsageError);
  EXPECT_THROW(Normalizer({.channels = 2, .std = {1, 0, 1, 1}}), UsageError);
  EXPECT_THROW(Normalizer({.channels = 1, .std = {NAN, 1, 1, 1}}), UsageError);
  EXPECT_NO_THROW(Normalizer({.channels = 1, .std = {1, 0, 0, 0}}));  // of channels not there
}

}  // namespace
}  // namespace argosy::image
