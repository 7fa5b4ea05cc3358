#include "argosy/datasets/contact_sheet.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/canvas.h"
#include "argosy/datasets/font.h"

namespace argosy::datasets {
namespace {

using image::Image;
using image::Order;

constexpr Colour kWhite{255, 255, 255};
constexpr Colour kRed{200, 0, 0};

using Pixel = std::tuple<int, int, int>;

Pixel pixel(const Image& image, int y, int x) {
  const auto* p = image.row<uint8_t>(y) + ptrdiff_t{3} * x;
  return {p[0], p[1], p[2]};
}

constexpr Pixel kWhitePixel{255, 255, 255};
constexpr Pixel kRedPixel{200, 0, 0};

/// The canvas as text: '#' for what is not white.
std::string drawn(const Image& image) {
  std::string text;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      text += pixel(image, y, x) == kWhitePixel ? '.' : '#';
    }
    text += '\n';
  }
  return text;
}

Image filled(image::Size size, Order order, uint8_t value) {
  Image image(size, order);
  for (int y = 0; y < image.height(); ++y) {
    for (size_t i = 0; i < image.row_bytes(); ++i) {
      image.row<uint8_t>(y)[i] = value;
    }
  }
  return image;
}

TEST(Font, EveryPrintableCharacterHasAGlyphOfItsOwn) {
  std::set<std::array<uint8_t, kGlyphHeight>> seen;
  for (char c = ' '; c <= '~'; ++c) {
    EXPECT_TRUE(seen.insert(glyph(c)).second) << c;
    for (const uint8_t row : glyph(c)) {
      EXPECT_LT(row, 1 << kGlyphWidth) << c;
    }
  }
  EXPECT_EQ(glyph('\xc3'), glyph('?'));
  EXPECT_EQ(glyph('\n'), glyph('?'));
}

TEST(Canvas, WritesText) {
  Canvas canvas({.height = 9, .width = 11}, kWhite);
  canvas.text({}, "g1", kRed);
  EXPECT_EQ(drawn(canvas.picture()),
            "........#..\n"
            ".......##..\n"
            ".####...#..\n"
            "#...#...#..\n"
            "#...#...#..\n"
            "#...#...#..\n"
            ".####..###.\n"
            "....#......\n"
            ".###.......\n");
  EXPECT_EQ(text_width("g1"), 11);
  EXPECT_EQ(text_width("g1", 2), 22);
  EXPECT_EQ(text_width(""), 0);
  EXPECT_EQ(text_width("\xc3\xb6g"), 11) << "a character, however many bytes it has";
}

TEST(Canvas, ACharacterThatTheFontLacksIsOneQuestionMark) {
  Canvas known({.height = 9, .width = 17}, kWhite);
  known.text({}, "L?w", kRed);
  Canvas other({.height = 9, .width = 17}, kWhite);
  other.text({}, "L\xc3\xb6w", kRed);
  EXPECT_EQ(drawn(other.picture()), drawn(known.picture()));
  EXPECT_EQ(fitting_text("\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6", text_width("oo..") - 1), "\xc3\xb6..");
}

TEST(Canvas, DrawsNothingOutside) {
  Canvas canvas({.height = 4, .width = 4}, kWhite);
  canvas.text({.top = -3, .left = -3}, "MM", kRed);
  canvas.fill({.top = 3, .left = 3, .height = 100, .width = 100}, kRed);
  canvas.dot({.top = 100, .left = -100}, 3, kRed);
  canvas.draw({.top = -1, .left = 2}, filled({.height = 9, .width = 9}, Order::kGray, 7));
  EXPECT_EQ(pixel(canvas.picture(), 3, 3), Pixel(7, 7, 7));
}

TEST(Canvas, KnowsTheOrderOfChannels) {
  Canvas canvas({.height = 1, .width = 4}, kWhite);
  for (const auto& [order, left] :
       {std::pair{Order::kGray, 0}, {Order::kRgb, 1}, {Order::kBgr, 2}, {Order::kRgba, 3}}) {
    Image one = filled({.height = 1, .width = 1}, order, 0);
    one.row<uint8_t>(0)[0] = 255;
    canvas.draw({.left = left}, one);
  }
  EXPECT_EQ(pixel(canvas.picture(), 0, 0), kWhitePixel);
  EXPECT_EQ(pixel(canvas.picture(), 0, 1), Pixel(255, 0, 0));
  EXPECT_EQ(pixel(canvas.picture(), 0, 2), Pixel(0, 0, 255));
  EXPECT_EQ(pixel(canvas.picture(), 0, 3), kWhitePixel) << "transparent";
  EXPECT_THROW(canvas.draw({}, Image({.height = 1, .width = 1}, Order::kGray, image::Type::kF32)),
               UsageError);
}

TEST(Canvas, TextIsCutWhereItDoesNotFit) {
  EXPECT_EQ(fitting_text("chrysanthemum", 1000), "chrysanthemum");
  EXPECT_EQ(fitting_text("chrysanthemum", text_width("chrys..")), "chrys..");
  EXPECT_EQ(fitting_text("chrysanthemum", 3), "..");
}

TEST(ContactSheet, SmallPicturesGrowByWholeNumbersAndLargeOnesShrink) {
  const Image small = filled({.height = 2, .width = 3}, Order::kRgb, 0);
  const Image sheet = contact_sheet({{.picture = small}}, {.columns = 1, .side = 8});
  EXPECT_THAT(drawn(sheet),
              testing::StartsWith("........\n........\n"
                                  ".######.\n.######.\n.######.\n.######.\n"
                                  "........\n........\n"));
  const Image large = filled({.height = 40, .width = 20}, Order::kGray, 0);
  EXPECT_THAT(drawn(contact_sheet({{.picture = large}}, {.columns = 1, .side = 4})),
              testing::StartsWith(".##.\n.##.\n.##.\n.##.\n"));
}

TEST(ContactSheet, PointsLieOnTheMiddleOfTheirPixels) {
  const Image white = filled({.height = 4, .width = 4}, Order::kGray, 255);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Image sheet = contact_sheet(
      {{.picture = white, .dots = {{.points = {3, 1, nan, 2, 1e30F, -1e30F}, .colour = kRed}}}},
      {.columns = 1, .side = 4});
  EXPECT_EQ(pixel(sheet, 1, 3), kRedPixel);
  EXPECT_EQ(pixel(sheet, 3, 0), kWhitePixel);
  // Four times as large: a disc of radius 4 around the middle of rows 4 to 7 and columns 8 to 11.
  const Image grown =
      contact_sheet({{.picture = white, .dots = {{.points = {2, 1}, .colour = kRed}}}},
                    {.columns = 1, .side = 16});
  for (const auto& [y, x, colour] : {std::tuple{6, 6, kRedPixel},
                                     {6, 5, kWhitePixel},
                                     {6, 14, kRedPixel},
                                     {6, 15, kWhitePixel},
                                     {2, 10, kRedPixel},
                                     {1, 10, kWhitePixel},
                                     {10, 10, kRedPixel},
                                     {11, 10, kWhitePixel}}) {
    EXPECT_EQ(pixel(grown, y, x), colour) << y << ", " << x;
  }
}

TEST(ContactSheet, TilesFillRowsAndBearTheirCaptions) {
  const Image dark = filled({.height = 4, .width = 4}, Order::kGray, 0);
  const std::vector<Tile> tiles(3, {.picture = dark, .caption = "a", .mark = kRed});
  const Image sheet = contact_sheet(tiles, {.columns = 2, .side = 20});
  EXPECT_EQ(sheet.width(), 46);
  EXPECT_EQ(pixel(sheet, 23, 0), kRedPixel) << "the caption's mark";
  EXPECT_EQ(pixel(sheet, 23, 26), kRedPixel);
  EXPECT_EQ(pixel(sheet, 40 + 23, 0), kRedPixel);
  EXPECT_EQ(pixel(sheet, 40 + 23, 26), kWhitePixel) << "there is no fourth";
  EXPECT_THROW((void)contact_sheet({}), UsageError);
}

TEST(ContactSheet, StackedPicturesKeepAMargin) {
  const Image dark = filled({.height = 4, .width = 4}, Order::kGray, 0);
  const Image stack = stacked({dark, dark});
  EXPECT_EQ(stack.size(), (image::Size{.height = 3 * 16 + 8, .width = 36}));
  EXPECT_EQ(pixel(stack, 16, 16), Pixel(0, 0, 0));
  EXPECT_EQ(pixel(stack, 36, 16), Pixel(0, 0, 0));
  EXPECT_EQ(pixel(stack, 21, 16), kWhitePixel);
}

}  // namespace
}  // namespace argosy::datasets
