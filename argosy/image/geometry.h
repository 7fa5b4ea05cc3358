#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "argosy/image/geometry_point.h"
#include "argosy/image/image.h"
#include "argosy/image/resize.h"

namespace argosy::image {

/// A color for pixels that the image does not have: one value for every channel, or one for each,
/// in the image's own order and range. u8 images take its whole part.
///
///     pad(photo, {4, 4, 4, 4}, {.fill = 128});
///     rotate(photo, 10, {.fill = {124, 116, 104}});
class Fill final {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a color is written as a number
  Fill(double value = 0) { values_.fill(static_cast<float>(value)); }
  /// 1 to 4 values. Errors: UsageError for another number.
  Fill(std::initializer_list<double> values);

  /// Returns the value of channel c. Errors: UsageError when it has several values, but not as many
  /// as the image has channels.
  [[nodiscard]] std::array<float, 4> of(const Image& image) const;
  /// Returns the 1 to 4 values that it was given.
  [[nodiscard]] std::span<const float> values() const {
    return {values_.data(), static_cast<size_t>(count_)};
  }
  bool operator==(const Fill&) const = default;

 private:
  std::array<float, 4> values_{};
  int count_ = 1;
};

// ---- pieces ----

/// Returns the pixels of a box, which must lie inside the image.
/// Errors: UsageError for a box that is empty or reaches outside; pad() first if that can happen.
[[nodiscard]] Image crop(const Image& image, Box box);

/// Returns the middle of the image. A smaller image is surrounded by zeros.
/// Source: torchvision 0.29, transforms/functional.py center_crop.
[[nodiscard]] Image center_crop(const Image& image, Size size);

/// Returns the box that center_crop() takes. It reaches outside an image that is smaller.
[[nodiscard]] Box center_box(Size image, Size size);

/// Fills a box. Its part outside the image is ignored.
[[nodiscard]] Image erase(const Image& image, Box box, const Fill& fill = 0);

// ---- without new values ----

[[nodiscard]] Image flip_horizontally(const Image& image);  ///< exchanges left and right
[[nodiscard]] Image flip_vertically(const Image& image);    ///< exchanges top and bottom
[[nodiscard]] Image transpose(const Image& image);          ///< exchanges rows and columns
/// Turns by quarters, counter-clockwise; negative numbers turn clockwise.
[[nodiscard]] Image rotate90(const Image& image, int quarter_turns = 1);

// ---- borders ----

/// Pixels to add on each side: one number for all sides, two (left and right; top and bottom) or
/// four (left, top, right, bottom), as in torchvision and Paddle.
///
///     pad(photo, 4)    pad(photo, {4, 2})    pad(photo, {1, 2, 3, 4})
struct Padding {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;

  // Constructors, for an aggregate would take one number, or two, for the first sides alone.
  Padding() = default;
  Padding(int all) : Padding(all, all) {}  // NOLINT(google-explicit-constructor): see above
  Padding(int left_right, int top_bottom)
      : Padding(left_right, top_bottom, left_right, top_bottom) {}
  Padding(int left, int top, int right, int bottom)
      : left(left), top(top), right(right), bottom(bottom) {}
  bool operator==(const Padding&) const = default;
};

/// How borders of [a b c] are filled: kConstant x x|a b c|x x, kEdge a a|a b c|c c, kReflect c b|a
/// b c|b a, kSymmetric b a|a b c|c b. The names are NumPy's, as in torchvision and Paddle.
enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kSymmetric };

struct PadOptions {
  PadMode mode = PadMode::kConstant;
  Fill fill = 0;  ///< for kConstant
};

/// Adds borders to an image. A negative number crops that side, as in torchvision. Borders may be
/// wider than the image: kReflect and kSymmetric then run to and fro.
/// Errors: UsageError when nothing would be left.
[[nodiscard]] Image pad(const Image& image, Padding padding, const PadOptions& options = {});

// ---- other shapes ----
//
// For each new pixel's centre, the place in the old image is found, and the new pixel made of the
// nearest one there (kNearest), of two by two (kBilinear) or of four by four (kBicubic, parameter
// -0.5); beyond the image stands the fill. No antialiasing: nothing is meant to shrink much. Sums
// are in f64, and u8 results cut instead of rounded: bit-equal to Pillow 13 (u8; f32 to its mode
// F), and kNearest of affine and rotate in its fixed point of 16 bits. u8 RGBA is interpolated with
// its colors weighed by alpha. Errors: UsageError for an empty image and for kBox, kHamming,
// kLanczos.

/// kOff: the result has the size of the image. kOn: it is large enough for the corners too.
enum class Expand : uint8_t { kOff, kOn };

struct RotateOptions {
  Interpolation interpolation = Interpolation::kNearest;
  Expand expand = Expand::kOff;    ///< the size assumes a rotation around the middle, whatever the
                                   ///< centre, as in Pillow
  std::optional<PointF> center{};  ///< centre of the rotation; nullopt: the middle of the image
  Fill fill = 0;
};

/// Turns an image counter-clockwise.
/// Source: Pillow 13, Image.rotate.
[[nodiscard]] Image rotate(const Image& image, double degrees, const RotateOptions& options = {});

struct AffineOptions {
  double angle = 0;    ///< degrees, clockwise (unlike rotate(); as in torchvision and Paddle)
  PointF translate{};  ///< pixels, to the right and down, after the rotation
  double scale = 1;    ///< scale of both axes, above 0
  double shear_x = 0;  ///< degrees, clockwise, along x
  double shear_y = 0;  ///< degrees, clockwise, along y
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill = 0;
  std::optional<PointF>
      center{};  ///< the point that stays in place; nullopt: the middle of the image
};

/// Turns, scales, shears and moves an image. The size stays.
/// Errors: UsageError also for a scale that is not above 0.
/// Source: torchvision 0.29, transforms/functional.py affine of a PIL image.
[[nodiscard]] Image affine(const Image& image, const AffineOptions& options);

struct WarpOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  Fill fill = 0;
};

/// Changes the perspective: the points `start` of the image move to `end`.
/// Errors: UsageError when three points lie on a line.
/// Source: torchvision 0.29, transforms/functional.py perspective: coefficients in f64, rounded to
/// f32.
[[nodiscard]] Image perspective(const Image& image,
                                const std::array<PointF, 4>& start,
                                const std::array<PointF, 4>& end,
                                const WarpOptions& options = {});

// ---- where a point of the image goes, for keypoints; see geometry_point.h ----

[[nodiscard]] PointMap crop_map(Box box);
[[nodiscard]] PointMap center_crop_map(Size image, Size size);
[[nodiscard]] PointMap pad_map(Padding padding);
[[nodiscard]] PointMap flip_horizontally_map(Size image);
[[nodiscard]] PointMap flip_vertically_map(Size image);
[[nodiscard]] PointMap transpose_map();
[[nodiscard]] PointMap rotate90_map(Size image, int quarter_turns = 1);
[[nodiscard]] PointMap resize_map(Size image, Size size);
[[nodiscard]] PointMap resize_map(const BoxF& source, Size size);
[[nodiscard]] PointMap rotate_map(Size image, double degrees, const RotateOptions& options = {});
[[nodiscard]] PointMap affine_map(Size image, const AffineOptions& options);
[[nodiscard]] PointMap perspective_map(const std::array<PointF, 4>& start,
                                       const std::array<PointF, 4>& end);

}  // namespace argosy::image
