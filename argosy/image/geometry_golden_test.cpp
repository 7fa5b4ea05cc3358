// Geometry beside Pillow and torchvision: tests/golden/images/generate_geometry.py.
#include <array>
#include <set>

#include <gtest/gtest.h>

#include "argosy/image/geometry.h"

#include "tests/golden/images/golden_images.h"

namespace argosy::image {
namespace {

Interpolation interpolation_of(const golden::Case& from) {
  const std::string& name = from.word("interpolation");
  return name == "nearest"    ? Interpolation::kNearest
         : name == "bilinear" ? Interpolation::kBilinear
                              : Interpolation::kBicubic;
}

std::optional<PointF> center_of(const golden::Case& from) {
  if (!from.has("center")) {
    return std::nullopt;
  }
  const std::vector<double> xy = from.numbers("center");
  return PointF{xy[0], xy[1]};
}

std::array<PointF, 4> points_of(const golden::Case& from, const std::string& key) {
  const std::vector<double> v = from.numbers(key);
  return {{{v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}, {v[6], v[7]}}};
}

Padding padding_of(const golden::Case& from) {
  const std::vector<double> ltrb = from.numbers("padding");
  return {static_cast<int>(ltrb[0]),
          static_cast<int>(ltrb[1]),
          static_cast<int>(ltrb[2]),
          static_cast<int>(ltrb[3])};
}

PadMode mode_of(const golden::Case& from) {
  const std::string& name = from.word("mode");
  return name == "constant"  ? PadMode::kConstant
         : name == "edge"    ? PadMode::kEdge
         : name == "reflect" ? PadMode::kReflect
                             : PadMode::kSymmetric;
}

Image run(const golden::Case& from) {
  const Image image = golden::picture(from);
  const std::string& name = from.operation;
  if (name == "center_crop") {
    return center_crop(image, from.pixels("to"));
  }
  if (name == "pad") {
    return pad(image, padding_of(from), {mode_of(from), from.number("fill")});
  }
  if (name == "flip_horizontally") {
    return flip_horizontally(image);
  }
  if (name == "flip_vertically") {
    return flip_vertically(image);
  }
  if (name == "transpose") {
    return transpose(image);
  }
  if (name.starts_with("rotate90_")) {
    return rotate90(image, name.back() - '0');
  }
  if (name == "rotate") {
    return rotate(image,
                  from.number("degrees"),
                  {interpolation_of(from),
                   from.whole("expand") == 1 ? Expand::kOn : Expand::kOff,
                   center_of(from),
                   from.number("fill")});
  }
  if (name == "affine") {
    const std::vector<double> move = from.numbers("translate"), shear = from.numbers("shear");
    return affine(image,
                  {from.number("angle"),
                   {move[0], move[1]},
                   from.number("scale"),
                   shear[0],
                   shear[1],
                   interpolation_of(from),
                   from.number("fill"),
                   center_of(from)});
  }
  if (name == "perspective") {
    return perspective(image,
                       points_of(from, "start"),
                       points_of(from, "end"),
                       {interpolation_of(from), from.number("fill")});
  }
  const std::vector<double> box = from.numbers("box");
  return erase(image,
               {static_cast<int>(box[0]),
                static_cast<int>(box[1]),
                static_cast<int>(box[2]),
                static_cast<int>(box[3])},
               {1, 2, 3});
}

TEST(GeometryGolden, EveryBitIsTheirs) {
  std::set<std::string> operations;
  for (const golden::Case& one : golden::read("geometry")) {
    if (one.raw.empty()) {
      golden::expect_same(one, run(one));
    } else {  // perspective() that moves nothing: theirs loses up to 1, ours nothing
      EXPECT_LE(golden::difference(one, run(one)).most, 1) << one.line;
      EXPECT_EQ(golden::digest_of(run(one)), golden::digest_of(golden::picture(one))) << one.line;
    }
    operations.insert(one.operation);
  }
  EXPECT_EQ(operations.size(), 12);
}

}  // namespace
}  // namespace argosy::image
