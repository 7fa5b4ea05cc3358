#include "argosy/image/geometry.h"

#include <cmath>
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

using test::error_text;
using ::testing::HasSubstr;

constexpr Size kSize{60, 80};

/// Each pixel says where it is.
Image numbered(Size size, Order order = Order::kRgb, Type type = Type::kU8) {
  Image image(size, order, type);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < image.channels(); ++c) {
        const int value = (y * 16 + x + c * 100) % 256;
        if (type == Type::kU8) {
          image.row<uint8_t>(y)[x * image.channels() + c] = static_cast<uint8_t>(value);
        } else {
          image.row<float>(y)[x * image.channels() + c] = static_cast<float>(value);
        }
      }
    }
  }
  return image;
}

bool same(const Image& a, const Image& b) {
  return a.size() == b.size() && a.order() == b.order() && a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), a.total_bytes()) == 0;
}

// ---- where points go ----

/// A soft dot around a place.
Image dot(PointF place) {
  Image image(kSize, Order::kGray, Type::kF32);
  for (int y = 0; y < kSize.height; ++y) {
    for (int x = 0; x < kSize.width; ++x) {
      const double dx = x + 0.5 - place.x, dy = y + 0.5 - place.y;
      image.row<float>(y)[x] = static_cast<float>(std::exp(-(dx * dx + dy * dy) / 8));
    }
  }
  return image;
}

PointF middle_of(const Image& image) {
  double sum = 0, x_sum = 0, y_sum = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const double value = image.row<float>(y)[x];
      sum += value;
      x_sum += value * (x + 0.5);
      y_sum += value * (y + 0.5);
    }
  }
  return {x_sum / sum, y_sum / sum};
}

void expect_dot_follows(const PointMap& map,
                        const std::function<Image(const Image&)>& change,
                        const char* what,
                        double bound = 0.05) {
  for (const PointF place : {PointF{31.25, 22.5}, PointF{45, 33.75}}) {
    const PointF expected = map_point(map, place);
    const PointF found = middle_of(change(dot(place)));
    EXPECT_NEAR(found.x, expected.x, bound) << what;
    EXPECT_NEAR(found.y, expected.y, bound) << what;
    const PointF back = map_point(map.inverse(), expected);
    EXPECT_NEAR(back.x, place.x, 1e-9) << what;
    EXPECT_NEAR(back.y, place.y, 1e-9) << what;
  }
}

TEST(PointMap, ADotLandsWhereTheMapSays) {
  const Box box{5, 10, 44, 50};
  expect_dot_follows(
      crop_map(box), [&](const Image& i) { return crop(i, box); }, "crop");
  for (const Size size : {Size{40, 60}, Size{90, 71}}) {
    expect_dot_follows(
        center_crop_map(kSize, size),
        [&](const Image& i) { return center_crop(i, size); },
        "center");
  }
  const Padding padding{3, 7, 11, 13};
  expect_dot_follows(
      pad_map(padding), [&](const Image& i) { return pad(i, padding); }, "pad");
  expect_dot_follows(flip_horizontally_map(kSize), flip_horizontally, "flip_horizontally");
  expect_dot_follows(flip_vertically_map(kSize), flip_vertically, "flip_vertically");
  expect_dot_follows(transpose_map(), transpose, "transpose");
  for (int turns = -4; turns <= 4; ++turns) {
    expect_dot_follows(
        rotate90_map(kSize, turns), [&](const Image& i) { return rotate90(i, turns); }, "rotate90");
  }
  expect_dot_follows(
      resize_map(kSize, {45, 100}),
      [](const Image& i) {
        return resize(i, {45, 100});
      },
      "resize");
  const BoxF part{4.5, 10.25, 50, 60.5};
  expect_dot_follows(
      resize_map(part, {80, 70}),
      [&](const Image& i) {
        return resize(i, part, {80, 70});
      },
      "box");
}

TEST(PointMap, ADotLandsWhereTheMapSaysAlsoBetweenPixels) {
  for (const Interpolation by :
       {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic}) {
    const double bound = by == Interpolation::kNearest ? 0.3 : 0.05;
    for (const double degrees : {20.0, 90.0, -45.0, 180.0}) {
      for (const Expand expand : {Expand::kOff, Expand::kOn}) {
        const RotateOptions options{.interpolation = by, .expand = expand};
        expect_dot_follows(
            rotate_map(kSize, degrees, options),
            [&](const Image& i) { return rotate(i, degrees, options); },
            "rotate",
            bound);
      }
    }
    const RotateOptions around{.interpolation = by, .center = PointF{35, 25}};
    expect_dot_follows(
        rotate_map(kSize, 33, around),
        [&](const Image& i) { return rotate(i, 33, around); },
        "around",
        bound);
    const AffineOptions options{.angle = 12,
                                .translate = {3, -4},
                                .scale = 1.1,
                                .shear_x = 8,
                                .shear_y = -5,
                                .interpolation = by};
    expect_dot_follows(
        affine_map(kSize, options),
        [&](const Image& i) { return affine(i, options); },
        "affine",
        bound);
    const std::array<PointF, 4> start{{{0, 0}, {80, 0}, {80, 60}, {0, 60}}};
    const std::array<PointF, 4> end{{{5, 3}, {77, 1}, {74, 57}, {2, 50}}};
    const PointMap map = perspective_map(start, end);
    // A plane that is seen from the side moves a dot's middle of mass a little: 0.1 of a pixel.
    expect_dot_follows(
        map, [&](const Image& i) { return perspective(i, start, end, {by}); }, "perspective", 0.35);
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(map_point(map, start[k]).x, end[k].x, 1e-3);
      EXPECT_NEAR(map_point(map, start[k]).y, end[k].y, 1e-3);
    }
  }
}

TEST(PointMap, IsComposedInTheOrderOfReading) {
  const PointMap map = crop_map({10, 20, 30, 40}).then(flip_horizontally_map({30, 40}));
  EXPECT_EQ(map_point(map, {25, 12}), (PointF{35, 2}));
  EXPECT_EQ(map_point(PointMap().then(map), {25, 12}), (PointF{35, 2}));
}

TEST(PointMap, OfIndicesTakesThePlaceOfAPixelForItsCentre) {
  // Column 0 of 80 becomes column 79, as torchvision flips keypoints.
  EXPECT_EQ(map_point(flip_horizontally_map(kSize).of_indices(), {0, 5}), (PointF{79, 5}));
  EXPECT_EQ(map_point(flip_horizontally_map(kSize), {0, 5}), (PointF{80, 5}));
}

TEST(PointMap, SaysWhenThereIsNoWayBack) {
  EXPECT_THAT(error_text<UsageError>([] { (void)PointMap::scaling(0, 1).inverse(); }),
              HasSubstr("no way back"));
}

// ---- pixels ----

TEST(Geometry, CropTakesTheBox) {
  const Image image = numbered({20, 30});
  const Image piece = crop(image, {3, 7, 5, 11});
  EXPECT_EQ(piece.size(), (Size{5, 11}));
  EXPECT_EQ(piece.row<uint8_t>(2)[4 * 3 + 1], image.row<uint8_t>(5)[11 * 3 + 1]);
  EXPECT_TRUE(same(crop(image, {0, 0, 20, 30}), image));
}

TEST(Geometry, CropRefusesABoxThatReachesOut) {
  const Image image = numbered({20, 30});
  for (const Box box : {Box{-1, 0, 5, 5},
                        Box{0, 26, 5, 5},
                        Box{16, 0, 5, 5},
                        Box{0, 0, 0, 5},
                        Box{1, 1, 2147483647, 5},
                        Box{0, 0, 5, -5}}) {
    EXPECT_THAT(error_text<UsageError>([&] { (void)crop(image, box); }),
                HasSubstr("[image.crop] expected a box inside of 20 x 30"));
  }
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)crop(Image(), {0, 0, 1, 1});
              }),
              HasSubstr("inside of 0 x 0"));
}

TEST(Geometry, FourQuarterTurnsAreNone) {
  for (const Order order : {Order::kGray, Order::kRgb, Order::kRgba}) {
    for (const Type type : {Type::kU8, Type::kF32}) {
      const Image image = numbered({7, 12}, order, type);
      EXPECT_TRUE(same(rotate90(rotate90(rotate90(rotate90(image)))), image));
      EXPECT_TRUE(same(rotate90(image, -1), rotate90(image, 3)));
      EXPECT_TRUE(same(flip_horizontally(flip_horizontally(image)), image));
      EXPECT_TRUE(same(rotate90(image, 2), flip_vertically(flip_horizontally(image))));
      EXPECT_TRUE(same(transpose(transpose(image)), image));
    }
  }
}

TEST(Geometry, PadReflectsToAndFro) {
  Image image({1, 3}, Order::kGray);
  std::memcpy(image.data(), "abc", 3);
  const auto padded = [&](PadMode mode) {
    const Image result = pad(image, {6, 0, 5, 0}, {mode, 'x'});
    return std::string(reinterpret_cast<const char*>(result.data()), result.total_bytes());
  };
  EXPECT_EQ(padded(PadMode::kConstant), "xxxxxxabcxxxxx");
  EXPECT_EQ(padded(PadMode::kEdge), "aaaaaaabcccccc");
  EXPECT_EQ(padded(PadMode::kReflect), "cbabcbabcbabcb");
  EXPECT_EQ(padded(PadMode::kSymmetric), "abccbaabccbaab");
  Image one({1, 1}, Order::kGray);
  *one.row<uint8_t>(0) = 9;
  EXPECT_EQ(pad(one, {2, 2, 2, 2}, {PadMode::kReflect}).row<uint8_t>(4)[4], 9);
}

TEST(Geometry, PadRefusesToLeaveNothingAndToFillTheMemory) {
  const Image image = numbered({20, 30});
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)pad(image, {-15, 0, -15, 0});
              }),
              HasSubstr("nothing is left of 20 x 30"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)pad(image, {-40, 0, 50, 0});
              }),
              HasSubstr("nothing is left"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)pad(image, {2147483647, 2147483647, 2147483647, 5});
              }),
              HasSubstr("at most"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)pad(image, {0, 0, 0, 0}, {.fill = {1, 2}});
              }),
              HasSubstr("1 or 3 values for RGB, got 2"));
}

TEST(Geometry, FillIsOneValueOrOneOfEachChannel) {
  const Image image = pad(numbered({2, 2}), {1, 0, 0, 0}, {.fill = {300, -5, 7.9}});
  EXPECT_EQ(image.row<uint8_t>(0)[0], 255);
  EXPECT_EQ(image.row<uint8_t>(0)[1], 0);
  EXPECT_EQ(image.row<uint8_t>(0)[2], 7);
  const Image floats = pad(numbered({2, 2}, Order::kRgb, Type::kF32), {1, 0, 0, 0}, {.fill = 7.5});
  EXPECT_EQ(floats.row<float>(0)[2], 7.5F);
  EXPECT_THAT(error_text<UsageError>([] {
                (void)Fill({1, 2, 3, 4, 5});
              }),
              HasSubstr("1 to 4 values, got 5"));
}

TEST(Geometry, FillOfASmoothRotationIsTheColorThatWasAskedFor) {
  const Image image = numbered({30, 30}, Order::kRgba);
  const Image turned =
      rotate(image, 45, {.interpolation = Interpolation::kBilinear, .fill = {10, 20, 30, 40}});
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(turned.row<uint8_t>(0)[c], 10 * (c + 1));
  }
}

TEST(Geometry, EraseLeavesOutWhatLiesOutside) {
  const Image image = numbered({20, 30});
  const Image erased = erase(image, {-5, 25, 10, 2147483647}, 1);
  EXPECT_EQ(erased.row<uint8_t>(4)[25 * 3], 1);
  EXPECT_EQ(erased.row<uint8_t>(4)[24 * 3], image.row<uint8_t>(4)[24 * 3]);
  EXPECT_EQ(erased.row<uint8_t>(5)[25 * 3], image.row<uint8_t>(5)[25 * 3]);
  EXPECT_TRUE(same(erase(image, {5, 5, 0, 3}), image));
}

TEST(Geometry, WarpsRefuseWhatMakesNoSense) {
  const Image image = numbered({20, 30});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error_text<UsageError>([&] { (void)rotate(image, nan); }),
              HasSubstr("[image.rotate]"));
  EXPECT_THAT(error_text<UsageError>(
                  [&] { (void)rotate(image, 5, {.interpolation = Interpolation::kBox}); }),
              HasSubstr("got box"));
  EXPECT_THAT(error_text<UsageError>([&] { (void)rotate(Image(), 5); }), HasSubstr("empty"));
  EXPECT_THAT(error_text<UsageError>([&] { (void)affine(image, {.scale = 0}); }),
              HasSubstr("a scale above 0, got 0"));
  EXPECT_THAT(error_text<UsageError>([&] { (void)affine(image, {.scale = nan}); }),
              HasSubstr("above 0"));
  const std::array<PointF, 4> line{{{0, 0}, {1, 1}, {2, 2}, {3, 0}}};
  const std::array<PointF, 4> square{{{0, 0}, {9, 0}, {9, 9}, {0, 9}}};
  EXPECT_THAT(error_text<UsageError>([&] { (void)perspective(image, square, line); }),
              HasSubstr("no three lie on a line"));
}

TEST(Geometry, APlaneSeenFromItsEdgeIsNoCrash) {
  // The line where the plane vanishes runs through the image: places there are infinite.
  const Image image = numbered({20, 30});
  const std::array<PointF, 4> start{{{0, 0}, {30, 0}, {30, 20}, {0, 20}}};
  const std::array<PointF, 4> end{{{10, 10}, {20, 0}, {15.5, 10}, {0, 20}}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(perspective(image, start, end, {static_cast<Interpolation>(i)}).size(), image.size());
  }
  EXPECT_EQ(affine(image, {.translate = {1e300, 0}, .scale = 1e-300}).size(), image.size());
  EXPECT_EQ(affine(image, {.angle = 90, .shear_x = 90}).size(), image.size());
}

}  // namespace
}  // namespace argosy::image
