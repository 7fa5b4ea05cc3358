#include "argosy/image/filter.h"

#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::image {
namespace {

using ::testing::HasSubstr;

Image of_one_value(Size size, Order order, uint8_t value) {
  Image image(size, order);
  std::memset(image.data(), value, image.total_bytes());
  return image;
}

TEST(Filter, OneColorStaysThatColor) {
  for (const uint8_t value : {0, 77, 255}) {
    const Image image = of_one_value({9, 12}, Order::kRgba, value);
    EXPECT_EQ(std::memcmp(gaussian_blur(image, {5, 7}).data(), image.data(), image.total_bytes()),
              0);
    EXPECT_EQ(std::memcmp(adjust_sharpness(image, 3).data(), image.data(), image.total_bytes()), 0);
  }
}

TEST(Filter, ABlurSpreadsADotAsItsSigmaSays) {
  Image image({41, 61}, Order::kGray, Type::kF32);
  std::memset(image.data(), 0, image.total_bytes());
  image.row<float>(20)[30] = 1;
  const Image blurred = gaussian_blur(image, {31, 41}, {.y = 2, .x = 4});
  double sum = 0, across = 0, down = 0;
  for (int y = 0; y < 41; ++y) {
    for (int x = 0; x < 61; ++x) {
      const double value = blurred.row<float>(y)[x];
      sum += value;
      across += value * (x - 30) * (x - 30);
      down += value * (y - 20) * (y - 20);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_NEAR(across, 16, 1e-3);
  EXPECT_NEAR(down, 4, 1e-3);
}

TEST(Filter, OutermostPixelsAndAlphaAreNotSharpened) {
  Image image = of_one_value({4, 4}, Order::kRgba, 100);
  image.row<uint8_t>(1)[1 * 4] = 200;
  image.row<uint8_t>(1)[1 * 4 + 3] = 200;
  image.row<uint8_t>(0)[0] = 200;
  const Image sharp = adjust_sharpness(image, 2);
  EXPECT_EQ(sharp.row<uint8_t>(0)[0], 200);
  EXPECT_GT(sharp.row<uint8_t>(1)[1 * 4], 200);
  EXPECT_EQ(sharp.row<uint8_t>(1)[1 * 4 + 3], 200);
  EXPECT_EQ(sharp.row<uint8_t>(2)[2 * 4 + 3], 100);
  const Image narrow = of_one_value({2, 9}, Order::kGray, 3);
  EXPECT_EQ(std::memcmp(adjust_sharpness(narrow, 0).data(), narrow.data(), 18), 0);
}

TEST(Filter, RefusesWhatMakesNoSense) {
  const Image image = of_one_value({9, 12}, Order::kRgb, 3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)gaussian_blur(image, 4); }),
              HasSubstr("an odd kernel of at most 17 for 9 pixels, got 4"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)gaussian_blur(image, -1); }),
              HasSubstr("odd kernel"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)gaussian_blur(image, {19, 3});
              }),
              HasSubstr("at most 17"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)gaussian_blur(image, 3, -1); }),
              HasSubstr("a sigma from 0 on"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)gaussian_blur(image, 3, nan); }),
              HasSubstr("sigma"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)gaussian_blur(Image(), 3); }),
              HasSubstr("empty"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_sharpness(image, -1); }),
              HasSubstr("from 0 on"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_sharpness(Image(), 1); }),
              HasSubstr("empty"));
  EXPECT_EQ(gaussian_blur(image, {17, 23}).size(), image.size());
}

}  // namespace
}  // namespace argosy::image
