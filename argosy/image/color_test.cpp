#include "argosy/image/color.h"

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Image pixel(Order order, const std::vector<uint8_t>& values) {
  Image image({1, 1}, order);
  std::memcpy(image.data(), values.data(), values.size());
  return image;
}

std::vector<int> values_of(const Image& image) {
  return {image.row<uint8_t>(0), image.row<uint8_t>(0) + image.total_bytes()};
}

TEST(Color, FactorsGoFromDullToTwiceAsFar) {
  const Image image = pixel(Order::kRgb, {200, 100, 50});
  EXPECT_THAT(values_of(adjust_brightness(image, 0)), ElementsAre(0, 0, 0));
  EXPECT_THAT(values_of(adjust_brightness(image, 1)), ElementsAre(200, 100, 50));
  EXPECT_THAT(values_of(adjust_brightness(image, 2)), ElementsAre(255, 200, 100));
  EXPECT_THAT(values_of(adjust_saturation(image, 0)), ElementsAre(124, 124, 124));
  EXPECT_THAT(values_of(adjust_contrast(image, 0)), ElementsAre(124, 124, 124));
}

TEST(Color, AHueGoesRoundTheCircle) {
  const auto turned = [](Order order, const std::vector<uint8_t>& values, double shift) {
    return values_of(adjust_hue(pixel(order, values), shift));
  };
  EXPECT_THAT(turned(Order::kRgb, {255, 0, 0}, 0.5), ElementsAre(0, 255, 252));  // 127 of 255
  EXPECT_THAT(turned(Order::kBgr, {0, 0, 255}, 0.5), ElementsAre(252, 255, 0));
  EXPECT_THAT(turned(Order::kRgb, {0, 0, 0}, 0.3), ElementsAre(0, 0, 0));
  EXPECT_THAT(turned(Order::kGray, {9}, 0.3), ElementsAre(9));
  const Image cyan = adjust_hue(to_f32(pixel(Order::kRgb, {255, 0, 0})), 0.5);
  EXPECT_EQ(cyan.row<float>(0)[0], 0);
  EXPECT_EQ(cyan.row<float>(0)[2], 1);
}

TEST(Color, AlphaStaysAsItIs) {
  const Image image = pixel(Order::kRgba, {200, 100, 50, 77});
  const Image floats = to_f32(image);
  const std::vector<std::function<Image(const Image&)>> all{
      [](const Image& i) { return adjust_brightness(i, 0.5); },
      [](const Image& i) { return adjust_contrast(i, 0.5); },
      [](const Image& i) { return adjust_saturation(i, 0.5); },
      [](const Image& i) { return adjust_hue(i, 0.3); },
      [](const Image& i) { return adjust_gamma(i, 2); },
      [](const Image& i) { return invert(i); },
      [](const Image& i) { return solarize(i, 0); },
      [](const Image& i) { return autocontrast(i); }};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i](image).row<uint8_t>(0)[3], 77) << i;
    EXPECT_EQ(all[i](floats).row<float>(0)[3], floats.row<float>(0)[3]) << i;
  }
  EXPECT_EQ(posterize(image, 1).row<uint8_t>(0)[3], 77);
  EXPECT_EQ(equalize(image).row<uint8_t>(0)[3], 77);
}

TEST(Color, AThresholdOfBytesIsNoneOfFloats) {
  const Image image = pixel(Order::kGray, {200});
  EXPECT_EQ(solarize(image, 128).row<uint8_t>(0)[0], 55);
  EXPECT_THROW((void)solarize(to_f32(image), 128), UsageError);
  EXPECT_FLOAT_EQ(solarize(to_f32(image), 0.5).row<float>(0)[0], 1 - 200 / 255.0F);
}

TEST(Color, ConvertKnowsWhatEachChannelIs) {
  const Image bgr = pixel(Order::kBgr, {10, 20, 30});
  EXPECT_THAT(values_of(convert(bgr, Order::kRgb)), ElementsAre(30, 20, 10));
  EXPECT_THAT(values_of(convert(bgr, Order::kRgba)), ElementsAre(30, 20, 10, 255));
  EXPECT_THAT(values_of(convert(bgr, Order::kGray)),
              ElementsAre(22));  // 0.299 · 30 + 0.587 · 20 + 0.114 · 10
  EXPECT_THAT(values_of(convert(bgr, Order::kBgr)), ElementsAre(10, 20, 30));
  EXPECT_THAT(values_of(convert(pixel(Order::kGray, {9}), Order::kRgba)),
              ElementsAre(9, 9, 9, 255));
  EXPECT_THAT(values_of(convert(pixel(Order::kRgba, {1, 2, 3, 4}), Order::kBgr)),
              ElementsAre(3, 2, 1));
  EXPECT_EQ(convert(to_f32(bgr), Order::kRgba).row<float>(0)[3], 1);
  EXPECT_EQ(to_grayscale(bgr, 3).order(), Order::kBgr);
  EXPECT_EQ(to_grayscale(pixel(Order::kRgba, {1, 2, 3, 4}), 3).order(), Order::kRgb);
}

TEST(Color, F32AndBackChangesNothing) {
  Image all({16, 16}, Order::kGray);
  for (int i = 0; i < 256; ++i) {
    all.row<uint8_t>(0)[i] = static_cast<uint8_t>(i);
  }
  for (const Scale scale : {Scale::kUnit, Scale::kNone}) {
    EXPECT_EQ(values_of(to_u8(to_f32(all, scale), scale)), values_of(all));
  }
  EXPECT_EQ(to_f32(all).row<float>(0)[255], 1);
  EXPECT_EQ(to_f32(all, Scale::kNone).row<float>(0)[255], 255);
}

TEST(Color, ToU8CutsOffWhatLiesOutside) {
  Image image({1, 4}, Order::kGray, Type::kF32);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{-infinity, infinity, static_cast<float>(kNan), 2.5F};
  std::memcpy(image.data(), values.data(), image.total_bytes());
  EXPECT_THAT(values_of(to_u8(image)), ElementsAre(0, 255, 0, 255));
  EXPECT_THAT(values_of(to_u8(image, Scale::kNone)), ElementsAre(0, 255, 0, 2));
}

TEST(Color, NanInAPictureIsNoCrash) {
  Image image({4, 4}, Order::kRgb, Type::kF32);
  std::fill_n(image.row<float>(0), 48, static_cast<float>(kNan));
  EXPECT_EQ(adjust_hue(image, 0.3).size(), image.size());
  EXPECT_EQ(autocontrast(image).size(), image.size());
  EXPECT_EQ(adjust_contrast(image, 0.3).size(), image.size());
}

TEST(Color, RefusesWhatMakesNoSense) {
  const Image image = pixel(Order::kRgb, {1, 2, 3});
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_brightness(image, -0.1); }),
              HasSubstr("from 0 on, got -0.1"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_contrast(image, kNan); }),
              HasSubstr("[image.adjust_contrast]"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_saturation(Image(), 1); }),
              HasSubstr("empty"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_hue(image, 0.6); }),
              HasSubstr("-0.5 to 0.5"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_hue(image, kNan); }),
              HasSubstr("-0.5 to 0.5"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)adjust_gamma(image, -1); }),
              HasSubstr("a gamma from 0 on"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)posterize(image, 0); }),
              HasSubstr("1 to 8 bits, got 0"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)posterize(to_f32(image), 4); }),
              HasSubstr("expected u8"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)equalize(to_f32(image)); }),
              HasSubstr("to_u8() it first"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)to_grayscale(image, 2); }),
              HasSubstr("1 or 3 channels, got 2"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)convert(Image(), Order::kRgb); }),
              HasSubstr("empty"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)to_f32(Image()); }), HasSubstr("empty"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)to_u8(Image()); }), HasSubstr("empty"));
}

}  // namespace
}  // namespace argosy::image
