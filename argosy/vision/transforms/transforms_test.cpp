#include "argosy/vision/transforms/transforms.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/vision/transforms/test_pictures.h"

namespace argosy::vision {
namespace {

using image::Image;
using image::Order;
using image::Size;
using test::bytes;
using test::complaint;
using test::equal;
using test::floats;
using test::stream;
using testing::AllOf;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A dark picture with a bright spot around its only known point: geometry must move both alike.
Picture marked(Size size, int x, int y) {
  Image image(size, Order::kGray);
  std::memset(image.data(), 0, image.total_bytes());
  for (int down = -2; down <= 2; ++down) {
    for (int right = -2; right <= 2; ++right) {
      image.row<uint8_t>(y + down)[x + right] =
          static_cast<uint8_t>(240 - 20 * (down * down + right * right));
    }
  }
  return KeypointImage{
      image, test::points({{static_cast<float>(x), static_cast<float>(y)}, {kNan, kNan}})};
}

/// Mean place of the brightness: x, y.
std::pair<double, double> bright_spot(const Image& image) {
  double sum = 0;
  double at_x = 0;
  double at_y = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const double value = image.row<uint8_t>(y)[x];
      sum += value;
      at_x += value * x;
      at_y += value * y;
    }
  }
  return {at_x / sum, at_y / sum};
}

/// The point of marked() must lie where the bright pixel went, and NaN must have stayed.
void expect_point_on_spot(const Picture& picture, double bound) {
  const auto [x, y] = bright_spot(picture.image());
  EXPECT_NEAR(picture.points()[0][0].item<double>(), x, bound);
  EXPECT_NEAR(picture.points()[0][1].item<double>(), y, bound);
  EXPECT_TRUE(std::isnan(picture.points()[1][0].item<double>()));
  EXPECT_TRUE(std::isnan(picture.points()[1][1].item<double>()));
}

TEST(Resize, TheShorterEdgeLeadsAndTheLongerIsRoundedDown) {
  EXPECT_EQ(Resize(256).target({375, 500}), (Size{256, 341}));
  EXPECT_EQ(Resize(256).target({500, 375}), (Size{341, 256}));
  EXPECT_EQ(Resize(256).target({100, 100}), (Size{256, 256}));
  EXPECT_EQ(Resize(256, {.max_size = 300}).target({375, 500}), (Size{225, 300}));
  EXPECT_EQ(Resize(256, {.max_size = 300}).target({3, 3000}), (Size{1, 300}));
  EXPECT_EQ(Resize({7, 9}).target({375, 500}), (Size{7, 9}));
  EXPECT_EQ(Resize(8)(bytes()).image().size(), (Size{8, 10}));
}

TEST(Resize, WrongSizesAreUsageErrors) {
  EXPECT_THROW(Resize(0), UsageError);
  EXPECT_THROW(Resize({0, 4}), UsageError);
  EXPECT_THROW(Resize(256, {.max_size = 256}), UsageError);
  EXPECT_THROW(Resize(Size{4, 4}, {.max_size = 9}), UsageError);
  EXPECT_THAT(complaint([] {
                return Resize(1 << 20).target({1, 1 << 20});
              }),
              HasSubstr("Set .max_size"));
}

TEST(CenterCrop, KeepsTheMiddleAndPadsWithZeros) {
  EXPECT_EQ(CenterCrop(4).box({11, 14}), (image::Box{4, 5, 4, 4}));  // 3.5 to even
  const Image out = CenterCrop({15, 4})(floats()).image();
  EXPECT_EQ(out.size(), (Size{15, 4}));
  EXPECT_EQ(out.row<float>(1)[0], 0.0F);
  EXPECT_EQ(out.row<float>(2)[0], floats().row<float>(0)[5 * 3]);
  EXPECT_THROW(CenterCrop(0), UsageError);
}

TEST(Points, MoveWithThePixels) {
  data::Random random = stream();
  expect_point_on_spot(CenterCrop(9)(marked({21, 25}, 12, 9)), 1e-6);
  expect_point_on_spot(CenterCrop(40)(marked({21, 25}, 12, 9)), 1e-6);
  expect_point_on_spot(Pad(image::Padding{1, 2, 3, 4})(marked({21, 25}, 12, 9)), 1e-6);
  expect_point_on_spot(RandomHorizontalFlip(1)(marked({21, 25}, 12, 9), random), 1e-6);
  expect_point_on_spot(RandomVerticalFlip(1)(marked({21, 25}, 12, 9), random), 1e-6);
  expect_point_on_spot(Resize({42, 50})(marked({21, 25}, 12, 9)), 0.05);
  expect_point_on_spot(Resize({13, 40})(marked({21, 25}, 12, 9)), 0.05);
  for (int64_t i = 0; i < 20; ++i) {
    data::Random own = stream(i);
    expect_point_on_spot(RandomCrop(33, {.padding = {1, 2, 3, 4}, .pad_if_needed = true})(
                             marked({21, 25}, 12, 9), own),
                         1e-6);
    expect_point_on_spot(RandomRotation(30)(marked({41, 41}, 22, 18), own), 0.4);
    expect_point_on_spot(
        RandomRotation(90, {.expand = image::Expand::kOn})(marked({41, 31}, 22, 18), own), 0.4);
    expect_point_on_spot(RandomAffine(20,
                                      {.translate = {0.1, 0.1},
                                       .scale = {1.0, 1.3},
                                       .shear_x = {-5, 5},
                                       .interpolation = image::Interpolation::kBilinear})(
                             marked({41, 41}, 22, 18), own),
                         0.1);
    expect_point_on_spot(
        RandomPerspective({.distortion_scale = 0.3, .p = 1})(marked({61, 61}, 32, 28), own), 0.2);
    expect_point_on_spot(RandomResizedCrop(60, {.scale = {0.9, 1.0}, .ratio = {0.95, 1.05}})(
                             marked({41, 41}, 22, 18), own),
                         0.1);
  }
}

TEST(Points, OutsideOfTheCutKeepTheirPlaceOutside) {
  Picture picture(KeypointImage{bytes({20, 20}), test::points({{0, 0}, {19, 10}})});
  const Picture out = CenterCrop(10)(picture);
  EXPECT_TRUE(torch::equal(out.points(), test::points({{-5, -5}, {14, 5}}))) << out.points();
}

TEST(Points, PairsChangePlacesInTheMirror) {
  data::Random random = stream();
  const Picture faces(KeypointImage{bytes({10, 20}), test::points({{1, 2}, {3, 4}, {kNan, kNan}})});
  const RandomHorizontalFlip flip({.p = 1, .keypoint_pairs = {{0, 2}}});
  const at::Tensor out = flip(faces, random).points();
  EXPECT_TRUE(std::isnan(out[0][0].item<float>()));
  EXPECT_EQ(out[1][0].item<float>(), 16);
  EXPECT_EQ(out[2][0].item<float>(), 18);
  EXPECT_EQ(out[2][1].item<float>(), 2);
  const RandomHorizontalFlip wrong({.p = 1, .keypoint_pairs = {{0, 3}}});
  EXPECT_THAT(complaint([&] { return wrong(faces, random); }),
              AllOf(HasSubstr("[vision.RandomHorizontalFlip]"),
                    HasSubstr("{0, 3}"),
                    HasSubstr("has 3 of them")));
  EXPECT_THROW(RandomVerticalFlip({.keypoint_pairs = {{-1, 0}}}), UsageError);
}

TEST(Points, ColorsLeaveThemAlone) {
  data::Random random = stream();
  const at::Tensor points = test::points({{1, 2}});
  const Compose colors{ColorJitter({.brightness = 0.5, .contrast = 0.5}),
                       Grayscale(3),
                       RandomInvert(1),
                       GaussianBlur(3),
                       RandomErasing({.p = 1}),
                       ToTensor(),
                       Normalize(0.5, 0.5)};
  const auto out = colors(KeypointImage{bytes(), points}, random);
  EXPECT_TRUE(torch::equal(out.points, points));
}

TEST(RandomCrop, CoversAllPlacesEvenly) {
  std::set<std::pair<int, int>> places;
  for (int64_t i = 0; i < 400; ++i) {
    data::Random random = stream(i);
    const image::Box box = RandomCrop(30).draw({32, 33}, random).box;
    places.emplace(box.top, box.left);
  }
  EXPECT_EQ(places.size(), 3U * 4U);
}

TEST(RandomCrop, PadsFirst) {
  data::Random random = stream();
  const Picture out = RandomCrop(15, {.padding = {0, 2, 1, 2}, .fill = image::Fill(7)})(
      bytes({11, 14}, Order::kGray), random);
  EXPECT_EQ(out.image().size(), (Size{15, 15}));
  EXPECT_EQ(out.image().row<uint8_t>(0)[0], 7);
  EXPECT_EQ(out.image().row<uint8_t>(2)[0], test::value(0, 0, 0));
  EXPECT_EQ(out.image().row<uint8_t>(2)[14], 7);
}

TEST(RandomCrop, ASmallerPictureIsAnErrorUnlessPadded) {
  data::Random random = stream();
  EXPECT_THAT(complaint([&] { return RandomCrop(32)(bytes(), random); }),
              AllOf(HasSubstr("[vision.RandomCrop]"),
                    HasSubstr("32 x 32, got 11 x 14"),
                    HasSubstr(".pad_if_needed")));
  EXPECT_EQ(RandomCrop(32, {.pad_if_needed = true})(bytes(), random).size(), (Size{32, 32}));
  EXPECT_THROW(RandomCrop(0), UsageError);
  EXPECT_THROW(RandomCrop(1 << 20), UsageError);
  EXPECT_THROW(Pad(std::numeric_limits<int>::max()), UsageError);
  EXPECT_THROW(Pad(-1), UsageError);
  EXPECT_THROW(RandomCrop(4, {.padding = {-1, 0, 0, 0}}), UsageError);
}

TEST(RandomCrop, ANumberIsTheBorderOfAllSides) {
  EXPECT_EQ(RandomCrop(32, {.padding = 4}).to_string(), "RandomCrop(32, padding=4)");
  EXPECT_EQ(RandomCrop(32, {.padding = 4}).options().padding, (image::Padding{4, 4, 4, 4}));
  EXPECT_EQ(RandomCrop(32, {.padding = {1, 2, 3, 4}}).options().padding,
            (image::Padding{1, 2, 3, 4}));
}

TEST(Pad, OneTwoAndFourNumbersMeanWhatTheyMeanToTorchvision) {
  EXPECT_EQ(Pad(4).padding(), (image::Padding{4, 4, 4, 4}));
  EXPECT_EQ(Pad({4}).padding(), (image::Padding{4, 4, 4, 4}));
  EXPECT_EQ(Pad({4, 2}).padding(), (image::Padding{4, 2, 4, 2}));
  EXPECT_EQ(Pad({1, 2, 3, 4}).padding(), (image::Padding{1, 2, 3, 4}));
  EXPECT_EQ(RandomCrop(32, {.padding = {4, 2}}).options().padding, (image::Padding{4, 2, 4, 2}));
  const at::Tensor chw = at::ones({1, 3, 4});
  EXPECT_EQ(functional::pad(chw, 1).sizes(), (at::IntArrayRef{1, 5, 6}));
  EXPECT_EQ(functional::pad(chw, {1}).sizes(), (at::IntArrayRef{1, 5, 6}));
  EXPECT_EQ(functional::pad(chw, {2, 1}).sizes(), (at::IntArrayRef{1, 5, 8}));
}

/// Whether T{number} compiles: of an aggregate it would set the first member and leave the second.
template <typename T>
concept TakesOneNumber = requires {
  T{0.1};
};

TEST(Options, OneNumberIsNeverHalfOfTwo) {
  EXPECT_FALSE(TakesOneNumber<Range>);
  EXPECT_FALSE(TakesOneNumber<RandomAffineOptions::Shift>);
  EXPECT_TRUE(TakesOneNumber<Spread>);
  EXPECT_TRUE(TakesOneNumber<image::Fill>);
}

TEST(RandomPerspective, ItsNumbersStandInTorchvisionsOrder) {
  EXPECT_EQ(RandomPerspective({0.25, 1.0}).to_string(),
            "RandomPerspective(distortion_scale=0.25, p=1)");
}

TEST(RandomResizedCrop, StaysInsideAndInItsRanges) {
  const RandomResizedCrop crop(8, {.scale = {0.2, 0.5}, .ratio = {0.5, 2.0}});
  for (int64_t i = 0; i < 1000; ++i) {
    data::Random random = stream(i);
    const image::Box box = crop.draw({300, 400}, random);
    ASSERT_GE(box.top, 0);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.top + box.height, 300);
    ASSERT_LE(box.left + box.width, 400);
    const double area = static_cast<double>(box.height) * box.width / (300.0 * 400);
    ASSERT_GT(area, 0.195);
    ASSERT_LT(area, 0.505);
  }
}

TEST(RandomResizedCrop, TakesTheMiddleWhereNothingFits) {
  data::Random random = stream();
  EXPECT_EQ(RandomResizedCrop(8).draw({10, 1000}, random), (image::Box{0, 493, 10, 13}));
  EXPECT_EQ(RandomResizedCrop(8).draw({1000, 9}, random), (image::Box{494, 0, 12, 9}));
  EXPECT_EQ(RandomResizedCrop(8).draw({1, 1}, random), (image::Box{0, 0, 1, 1}));
}

TEST(RandomResizedCrop, WrongRangesAreNamed) {
  EXPECT_THAT(complaint([] {
                return RandomResizedCrop(8, {.scale = {0.5, 0.2}});
              }),
              AllOf(HasSubstr("[vision.RandomResizedCrop] option scale"), HasSubstr("{0.5, 0.2}")));
  EXPECT_THROW(RandomResizedCrop(8, {.scale = {0.5, 1.2}}), UsageError);
  EXPECT_THROW(RandomResizedCrop(8, {.ratio = {0, 1}}), UsageError);
  EXPECT_THROW(RandomResizedCrop({8, 0}), UsageError);
}

TEST(Flips, HappenWithTheirProbability) {
  int across = 0;
  int down = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    data::Random random = stream(i);
    across += equal(RandomHorizontalFlip(0.25)(bytes(), random).image(), bytes()) ? 0 : 1;
    down += equal(RandomVerticalFlip(0.75)(bytes(), random).image(), bytes()) ? 0 : 1;
  }
  EXPECT_NEAR(across, 250, 5 * 14);
  EXPECT_NEAR(down, 750, 5 * 14);
  EXPECT_THROW(RandomHorizontalFlip(1.1), UsageError);
  EXPECT_THROW(RandomVerticalFlip(-0.1), UsageError);
}

TEST(Warps, WrongOptionsAreNamed) {
  EXPECT_THAT(complaint([] { return RandomRotation(-3); }), HasSubstr("[vision.RandomRotation]"));
  EXPECT_THROW(RandomRotation({20, 10}), UsageError);
  EXPECT_THROW(RandomRotation({0, INFINITY}), UsageError);
  EXPECT_THAT(complaint([] {
                return RandomAffine(5, {.translate = {0, 1.5}});
              }),
              HasSubstr("option translate.y"));
  EXPECT_THROW(RandomAffine(5, {.scale = {0, 1}}), UsageError);
  EXPECT_THROW(RandomAffine(5, {.shear_x = {3, 1}}), UsageError);
  EXPECT_THROW(RandomPerspective({.distortion_scale = 1.5}), UsageError);
}

TEST(Colors, WrongOptionsAreNamed) {
  EXPECT_THAT(complaint([] { return ColorJitter({.contrast = -0.5}); }),
              HasSubstr("[vision.ColorJitter] option contrast"));
  EXPECT_THAT(complaint([] { return ColorJitter({.hue = 0.6}); }), HasSubstr("option hue"));
  EXPECT_THROW(ColorJitter({.brightness = {1.2, 0.8}}), UsageError);
  EXPECT_THROW(BrightnessTransform(-1), UsageError);
  EXPECT_THROW(HueTransform({-0.7, 0}), UsageError);
  EXPECT_THROW(Grayscale(2), UsageError);
  EXPECT_THROW(RandomGrayscale(2), UsageError);
}

TEST(Colors, AFactorAroundOneNeverFallsBelowZero) {
  EXPECT_EQ(BrightnessTransform(1.5).to_string(), "BrightnessTransform({0, 2.5})");
  EXPECT_EQ(HueTransform(0.25).to_string(), "HueTransform({-0.25, 0.25})");
  EXPECT_EQ(ContrastTransform({0.5, 0.75}).to_string(), "ContrastTransform({0.5, 0.75})");
}

TEST(Colors, EachIsItsFunctionWithADrawnFactor) {
  for (int64_t i = 0; i < 5; ++i) {
    data::Random random = stream(i);
    data::Random same = stream(i);
    const double factor = same.uniform(0.6, 1.4);
    EXPECT_TRUE(equal(BrightnessTransform(0.4)(bytes(), random).image(),
                      image::adjust_brightness(bytes(), factor)));
    random = same = stream(i);
    EXPECT_TRUE(equal(ContrastTransform(0.4)(bytes(), random).image(),
                      image::adjust_contrast(bytes(), same.uniform(0.6, 1.4))));
    random = same = stream(i);
    EXPECT_TRUE(equal(SaturationTransform(0.4)(bytes(), random).image(),
                      image::adjust_saturation(bytes(), same.uniform(0.6, 1.4))));
    random = same = stream(i);
    EXPECT_TRUE(equal(HueTransform(0.4)(bytes(), random).image(),
                      image::adjust_hue(bytes(), same.uniform(-0.4, 0.4))));
  }
}

TEST(Colors, NothingToDoDrawsNothingAndChangesNothing) {
  data::Random random = stream();
  data::Random untouched = stream();
  EXPECT_TRUE(equal(BrightnessTransform(0)(bytes(), random).image(), bytes()));
  EXPECT_TRUE(equal(HueTransform(0)(bytes(), random).image(), bytes()));
  EXPECT_EQ(random(), untouched());
  EXPECT_TRUE(equal(ColorJitter({})(bytes(), random).image(), bytes()));
}

TEST(Colors, GrayKeepsTheNumberOfChannelsAsAsked) {
  data::Random random = stream();
  EXPECT_EQ(Grayscale()(bytes()).order(), Order::kGray);
  const Image three = Grayscale(3)(bytes()).image();
  EXPECT_EQ(three.order(), Order::kRgb);
  EXPECT_EQ(three.row<uint8_t>(4)[0], three.row<uint8_t>(4)[2]);
  EXPECT_EQ(RandomGrayscale(1)(bytes(), random).image().channels(), 3);
  EXPECT_EQ(RandomGrayscale(1)(bytes({4, 4}, Order::kGray), random).order(), Order::kGray);
  EXPECT_TRUE(equal(RandomGrayscale(0)(bytes(), random).image(), bytes()));
}

TEST(Colors, BgrGivesTheColorsOfRgb) {
  const Picture bgr = ConvertOrder(Order::kBgr)(bytes());
  EXPECT_EQ(bgr.image().row<uint8_t>(3)[0], test::value(3, 0, 2));
  EXPECT_TRUE(equal(Grayscale()(bgr).image(), Grayscale()(bytes()).image()));
  EXPECT_TRUE(equal(ConvertOrder(Order::kRgb)(bgr).image(), bytes()));
}

TEST(Repeat, MakesThreeOfOneGrayChannel) {
  const Picture gray = bytes({5, 6}, Order::kGray);
  const at::Tensor three = Repeat(3)(ToTensor()(gray)).tensor().chw;
  EXPECT_EQ(three.sizes(), (std::vector<int64_t>{3, 5, 6}));
  EXPECT_TRUE(torch::equal(three[0], ToTensor()(gray).tensor().chw[0]));
  EXPECT_TRUE(torch::equal(three[2], three[0]));
  EXPECT_EQ(Repeat(1)(gray).order(), Order::kGray);
  EXPECT_THROW(Repeat(2), UsageError);
  EXPECT_THAT(complaint([] { return Repeat(3)(bytes()); }), HasSubstr("Grayscale() before it"));
}

TEST(Tones, HappenWithTheirProbabilityAndSayWhatTheyCannotDo) {
  int inverted = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    data::Random random = stream(i);
    inverted += equal(RandomInvert(0.25)(bytes(), random).image(), bytes()) ? 0 : 1;
  }
  EXPECT_NEAR(inverted, 250, 5 * 14);
  data::Random random = stream();
  EXPECT_THAT(
      complaint([&] { return RandomEqualize(1)(floats(), random); }),
      AllOf(HasSubstr(
                "[vision.RandomEqualize] expected u8, got an image of 11 x 14 pixels (RGB, f32)"),
            HasSubstr("before ToTensor()")));
  EXPECT_THROW(RandomPosterize(3, 0)(floats(), random), UsageError);  // even where it does nothing
  EXPECT_THROW(RandomPosterize(0), UsageError);
  EXPECT_THROW(RandomPosterize(9), UsageError);
  EXPECT_THROW(RandomSolarize(256), UsageError);
  EXPECT_THROW(RandomAdjustSharpness(-1), UsageError);
  EXPECT_THROW(GaussianBlur(4), UsageError);
  EXPECT_THROW(GaussianBlur(3, {0, 1}), UsageError);
  // One value, or two pixels: nothing to stretch, nothing between.
  EXPECT_TRUE(equal(functional::autocontrast(bytes({1, 1})), bytes({1, 1})));
  EXPECT_TRUE(equal(functional::equalize(bytes({1, 1})), bytes({1, 1})));
  EXPECT_TRUE(equal(functional::adjust_sharpness(bytes({2, 9}), 3), bytes({2, 9})));
}

TEST(ToTensor, ScalesBytesOnce) {
  const Picture once = ToTensor()(bytes());
  EXPECT_EQ(once.tensor().order, Order::kRgb);
  EXPECT_EQ(once.tensor().chw[2][10][13].item<float>(), test::value(10, 13, 2) / 255.0F);
  EXPECT_TRUE(torch::equal(ToTensor()(once).tensor().chw, once.tensor().chw));
  EXPECT_TRUE(torch::equal(ToTensor()(to_chw(bytes())).tensor().chw, once.tensor().chw));
  EXPECT_TRUE(torch::equal(ToTensor()(floats()).tensor().chw, once.tensor().chw));
  EXPECT_THAT(complaint([] {
                return ToTensor()(torch::zeros({3, 2, 2}, torch::kLong));
              }),
              AllOf(HasSubstr("[vision.ToTensor]"), HasSubstr("[3, 2, 2] (RGB, Long)")));
}

TEST(Transpose, PermutesAndForgetsChannelsThatAreNotFirst) {
  const Picture chw = Transpose()(bytes());
  EXPECT_TRUE(torch::equal(chw.tensor().chw, to_chw(bytes())));
  EXPECT_EQ(chw.order(), Order::kRgb);
  const Picture cwh = Transpose({2, 1, 0})(bytes());
  EXPECT_EQ(cwh.tensor().chw.sizes(), (std::vector<int64_t>{3, 14, 11}));
  EXPECT_EQ(cwh.tensor().chw[1][9][7].item<int>(), test::value(7, 9, 1));
  EXPECT_EQ(cwh.order(), Order::kRgb);
  const Picture hwc = Transpose({1, 2, 0})(chw);
  EXPECT_EQ(hwc.tensor().chw.sizes(), (std::vector<int64_t>{11, 14, 3}));
  EXPECT_FALSE(hwc.order().has_value());
  EXPECT_THAT(complaint([&] { return ToTensor()(hwc); }), HasSubstr("no known channels"));
  EXPECT_THROW(Transpose({0, 1, 1}), UsageError);
}

TEST(Normalize, WorksBeforeAfterAndWithoutToTensor) {
  const Normalize normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  const at::Tensor after = Compose{ToTensor(), normalize}(bytes());
  EXPECT_TRUE(torch::equal(Compose{normalize}(bytes()), after));
  EXPECT_TRUE(torch::equal((Compose{normalize, ToTensor()})(bytes()), after));
  EXPECT_TRUE(torch::equal(Compose{normalize}(to_chw(bytes())), after));
  EXPECT_EQ(normalize(bytes()).image().type(), image::Type::kF32);
}

TEST(Normalize, WrongConstantsAreNamedBeforeTheyMisleadAModel) {
  const Normalize imagenet({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  EXPECT_THAT(
      complaint([&] { return imagenet(ConvertOrder(Order::kBgr)(bytes())); }),
      AllOf(HasSubstr("[vision.Normalize] expected RGB, got BGR"), HasSubstr("ConvertOrder()")));
  EXPECT_THAT(complaint([&] {
                return imagenet(bytes({4, 4}, Order::kGray));
              }),
              HasSubstr("expected 3 channels, one for each constant, got 1 (gray)"));
  EXPECT_THAT(complaint([] {
                return Normalize({123.7, 116.3, 103.5}, {58, 57, 57})(bytes());
              }),
              AllOf(HasSubstr("got 123.7"), HasSubstr("Scale::kNone")));
  EXPECT_EQ(Normalize({1, 2, 3}, {1, 1, 1}, {.scale = image::Scale::kNone, .order = Order::kBgr})(
                ConvertOrder(Order::kBgr)(bytes()))
                .image()
                .row<float>(3)[1],
            test::value(3, 0, 1) - 2.0F);
  EXPECT_THROW(Normalize(0, 0), UsageError);
  EXPECT_THROW(Normalize({0.5, 0.5}, {0.5}), UsageError);
  EXPECT_THROW(Normalize(NAN, 1), UsageError);
  EXPECT_THROW(Normalize({}, {}), UsageError);
}

TEST(RandomErasing, FillsABoxWithItsValueOrNoise) {
  data::Random random = stream();
  data::Random same = random;
  ASSERT_TRUE(same.bernoulli(1));
  const std::optional<image::Box> box = RandomErasing().draw({11, 14}, same);
  ASSERT_TRUE(box.has_value());
  const Image erased = RandomErasing({.p = 1, .value = image::Fill(3)})(bytes(), random).image();
  for (int y = 0; y < 11; ++y) {
    for (int x = 0; x < 14; ++x) {
      const bool inside = y >= box->top && y < box->top + box->height && x >= box->left &&
                          x < box->left + box->width;
      ASSERT_EQ(erased.row<uint8_t>(y)[x * 3 + 1], inside ? 3 : test::value(y, x, 1));
    }
  }
}

TEST(RandomErasing, NoiseIsNormalInF32AndEvenInU8) {
  const RandomErasing noise(
      {.p = 1, .scale = {0.5, 0.5}, .ratio = {1, 1}, .with = EraseWith::kNoise});
  Image zeros({200, 200}, Order::kGray, image::Type::kF32);
  std::memset(zeros.data(), 0, zeros.total_bytes());
  data::Random random = stream();
  const at::Tensor drawn = to_chw(noise(zeros, random).image());
  const at::Tensor inside = drawn.masked_select(drawn != 0);
  EXPECT_NEAR(inside.numel(), 20000, 200);
  EXPECT_NEAR(inside.mean().item<double>(), 0, 0.036);
  EXPECT_NEAR(inside.std().item<double>(), 1, 0.026);
  Image dark({200, 200}, Order::kGray);
  std::memset(dark.data(), 0, dark.total_bytes());
  const at::Tensor u8 = to_chw(noise(dark, random).image()).to(torch::kDouble);
  EXPECT_NEAR(u8.sum().item<double>() / 20000, 127.5, 3.5);
  EXPECT_EQ(u8.max().item<double>(), 255);
}

TEST(RandomErasing, WrongOptionsAreNamed) {
  EXPECT_THAT(complaint([] {
                return RandomErasing({.scale = {0, 2}});
              }),
              HasSubstr("[vision.RandomErasing] option scale"));
  EXPECT_THROW(RandomErasing({.ratio = {0, 1}}), UsageError);
  EXPECT_THROW(RandomErasing({.p = NAN}), UsageError);
}

TEST(Tensors, GetThePixelsOfImages) {
  const std::vector<AnyTransform> steps = {
      Resize(8),
      CenterCrop(9),
      Pad(3),
      RandomCrop(7),
      RandomResizedCrop(9),
      RandomVerticalFlip(),
      RandomRotation(30),
      RandomAffine(20),
      RandomPerspective({.p = 1}),
      ColorJitter({.brightness = 0.5, .contrast = 0.5, .saturation = 0.5, .hue = 0.2}),
      RandomGrayscale(1),
      GaussianBlur(3),
      RandomInvert(1),
      RandomAutocontrast(1),
      RandomAdjustSharpness(2, 1),
      RandomErasing({.p = 1}),
      Normalize(0.5, 0.5)};
  for (const AnyTransform& step : steps) {
    for (const bool real : {false, true}) {
      const Image image = real ? floats() : bytes();
      data::Random one = stream();
      data::Random two = stream();
      const Picture from_image = step.apply(image, one);
      const Picture from_tensor = step.apply(to_chw(image), two);
      EXPECT_TRUE(torch::equal(from_tensor.tensor().chw, to_chw(from_image.image())))
          << step.to_string();
      EXPECT_EQ(from_tensor.order(), from_image.order()) << step.to_string();
    }
  }
}

TEST(Functional, TensorsGetTheNumbersOfImages) {
  namespace F = functional;
  const Image image = bytes();
  const at::Tensor chw = to_chw(image);
  EXPECT_TRUE(torch::equal(F::resize(chw, {5, 6}), to_chw(F::resize(image, {5, 6}))));
  EXPECT_TRUE(torch::equal(F::rotate(chw, 30), to_chw(F::rotate(image, 30))));
  EXPECT_TRUE(torch::equal(F::adjust_hue(chw, 0.1), to_chw(F::adjust_hue(image, 0.1))));
  EXPECT_TRUE(torch::equal(F::gaussian_blur(chw, 3, 1.0), to_chw(F::gaussian_blur(image, 3, 1.0))));
  EXPECT_TRUE(torch::equal(F::equalize(chw), to_chw(F::equalize(image))));
  EXPECT_EQ(F::to_grayscale(chw).size(0), 1);
  EXPECT_THAT(complaint([] {
                return F::crop(torch::zeros({3, 4, 4}, torch::kInt), {0, 0, 2, 2});
              }),
              HasSubstr("[vision.functional] expected an image or a CHW tensor of u8 or f32"));
  EXPECT_THROW(F::resize(torch::zeros({4, 4}), {2, 2}), UsageError);
}

TEST(Printing, OptionsThatDifferAreShown) {
  EXPECT_EQ(Resize({256, 256}, {.interpolation = image::Interpolation::kNearest}).to_string(),
            "Resize({256, 256}, interpolation=nearest)");
  EXPECT_EQ(RandomErasing({.p = 0.1, .with = EraseWith::kNoise}).to_string(),
            "RandomErasing(p=0.1, with=noise)");
  EXPECT_EQ(RandomHorizontalFlip({.keypoint_pairs = {{0, 1}, {2, 3}}}).to_string(),
            "RandomHorizontalFlip(keypoint_pairs=2)");
  EXPECT_EQ(Normalize(0.5, 0.25, {.scale = image::Scale::kNone}).to_string(),
            "Normalize(0.5, 0.25, scale=none)");
  EXPECT_EQ(RandomAffine(15, {.translate = {0.1, 0.2}}).to_string(),
            "RandomAffine({-15, 15}, translate={0.1, 0.2})");
  EXPECT_EQ(Transpose().to_string(), "Transpose({2, 0, 1})");
}

}  // namespace
}  // namespace argosy::vision
