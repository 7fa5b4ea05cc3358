// resize() beside Pillow and torch: tests/golden/images/generate_resize.py.
#include <array>

#include <gtest/gtest.h>

#include "argosy/image/resize.h"

#include "tests/golden/images/golden_images.h"

namespace argosy::image {
namespace {

Interpolation interpolation_of(const std::string& name) {
  for (int i = 0; i < 6; ++i) {
    if (to_string(static_cast<Interpolation>(i)) == name) {
      return static_cast<Interpolation>(i);
    }
  }
  throw std::invalid_argument(name);
}

Image run(const golden::Case& from) {
  const Antialias antialias = from.operation == "resize" ? Antialias::kOn : Antialias::kOff;
  const ResizeOptions options{interpolation_of(from.word("interpolation")), antialias};
  if (!from.has("box")) {
    return resize(golden::picture(from), from.pixels("to"), options);
  }
  const std::vector<double> ltrb = from.numbers("box");
  const BoxF box{ltrb[1], ltrb[0], ltrb[3] - ltrb[1], ltrb[2] - ltrb[0]};
  return resize(golden::picture(from), box, from.pixels("to"), options);
}

TEST(ResizeGolden, EveryBitIsPillows) {
  int count = 0;
  for (const golden::Case& one : golden::read("resize")) {
    if (one.operation == "resize") {
      golden::expect_same(one, run(one));
      ++count;
    }
  }
  EXPECT_GE(count, 200);
}

TEST(ResizeGolden, WithoutAntialiasingIsTorchsWithin1) {
  int count = 0;
  for (const golden::Case& one : golden::read("resize")) {
    if (one.operation == "plain_resize") {
      // u8: their weights have 15 bits or fewer. f32: they sum in f32.
      const golden::Difference apart = golden::difference(one, run(one));
      EXPECT_LE(apart.most, one.word("type") == "u8" ? 1 : 1e-6) << one.line;
      ++count;
    }
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace argosy::image
