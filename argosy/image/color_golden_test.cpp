// Colors and filters beside Pillow, torchvision and Paddle:
// tests/golden/images/generate_color.py.
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "argosy/image/color.h"
#include "argosy/image/filter.h"

#include "tests/golden/images/golden_images.h"

namespace argosy::image {
namespace {

using Operation = std::function<Image(const Image&, const golden::Case&)>;

Image blurred(const Image& image, const golden::Case& from) {
  const std::vector<double> kernel = from.numbers("kernel"), sigma = from.numbers("sigma");
  return gaussian_blur(
      image, {static_cast<int>(kernel[1]), static_cast<int>(kernel[0])}, {sigma[1], sigma[0]});
}

const std::map<std::string, Operation>& operations() {
  using From = golden::Case;
  static const std::map<std::string, Operation> all{
      {"adjust_brightness",
       [](auto& i, const From& f) { return adjust_brightness(i, f.number("factor")); }},
      {"adjust_contrast",
       [](auto& i, const From& f) { return adjust_contrast(i, f.number("factor")); }},
      {"adjust_saturation",
       [](auto& i, const From& f) { return adjust_saturation(i, f.number("factor")); }},
      {"adjust_sharpness",
       [](auto& i, const From& f) { return adjust_sharpness(i, f.number("factor")); }},
      {"adjust_hue", [](auto& i, const From& f) { return adjust_hue(i, f.number("shift")); }},
      {"adjust_gamma",
       [](auto& i, const From& f) { return adjust_gamma(i, f.number("gamma"), f.number("gain")); }},
      {"invert", [](auto& i, const From&) { return invert(i); }},
      {"posterize", [](auto& i, const From& f) { return posterize(i, f.whole("bits")); }},
      {"solarize", [](auto& i, const From& f) { return solarize(i, f.number("threshold")); }},
      {"autocontrast", [](auto& i, const From&) { return autocontrast(i); }},
      {"equalize", [](auto& i, const From&) { return equalize(i); }},
      {"to_grayscale", [](auto& i, const From& f) { return to_grayscale(i, f.whole("channels")); }},
      {"convert",
       [](auto& i, const From& f) { return convert(i, golden::order_of(f.word("to"))); }},
      {"to_f32", [](auto& i, const From&) { return to_f32(i); }},
      {"to_u8", [](auto& i, const From&) { return to_u8(i); }},
      {"gaussian_blur", blurred}};
  return all;
}

TEST(ColorGolden, EveryBitIsTheirs) {
  std::set<std::string> seen;
  for (const golden::Case& one : golden::read("color")) {
    if (one.raw.empty()) {
      golden::expect_same(one, operations().at(one.operation)(golden::picture(one), one));
      seen.insert(one.operation);
    }
  }
  EXPECT_EQ(seen.size(), 13);
}

TEST(ColorGolden, FloatsAndBlursAreTorchvisionsWithinABound) {
  std::set<std::string> seen;
  double blurred = 0, apart_of_blurred = 0;
  for (const golden::Case& one : golden::read("color")) {
    if (one.raw.empty()) {
      continue;
    }
    const Image result = operations().at(one.operation)(golden::picture(one), one);
    const golden::Difference apart = golden::difference(one, result);
    const bool bytes = result.type() == Type::kU8;
    // f32: means and sums of products are taken in another order, powers by another library.
    EXPECT_LE(apart.most, !bytes ? 1e-6 : one.operation == "gaussian_blur" ? 1 : 0) << one.line;
    if (bytes && one.operation == "gaussian_blur") {
      const auto count = static_cast<double>(result.total_bytes());
      blurred += count;
      apart_of_blurred += apart.share * count;
    }
    seen.insert(one.operation);
  }
  EXPECT_LE(apart_of_blurred / blurred, 1e-3);  // halves that round to the other side
  EXPECT_EQ(seen.size(), 13);
}

/// The channels' places are all that differs.
TEST(ColorGolden, BgrIsRgbByAnotherName) {
  int count = 0;
  for (const golden::Case& one : golden::read("color")) {
    if (one.word("order") != "rgb" || one.operation == "convert" ||
        one.operation.starts_with("to_")) {
      continue;
    }
    const Image rgb = golden::picture(one);
    const Operation& operation = operations().at(one.operation);
    const Image bgr = operation(convert(rgb, Order::kBgr), one);
    EXPECT_EQ(bgr.order(), Order::kBgr);
    EXPECT_EQ(golden::digest_of(convert(bgr, Order::kRgb)), golden::digest_of(operation(rgb, one)))
        << one.line;
    ++count;
  }
  EXPECT_GE(count, 100);
}

}  // namespace
}  // namespace argosy::image
