#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/data/random.h"
#include "argosy/image/geometry.h"
#include "argosy/image/image.h"
#include "argosy/image/resize.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/ranges.h"

// Transforms that turn, shift and bend. Points move with the pixels.
namespace argosy::vision {

/// Rotates by an angle drawn from `degrees`, counter-clockwise.
///
///     RandomRotation(45)     RandomRotation({-10, 30}, {.interpolation =
///     image::Interpolation::kBilinear})
///
/// 45 means [-45, 45]. The defaults of image::RotateOptions are nearest interpolation, no
/// expansion, rotation about the middle, and 0 outside. Source: torchvision's and Paddle's
/// RandomRotation.
/// Errors: UsageError for a negative number of degrees.
class RandomRotation final {
 public:
  static constexpr std::string_view kName = "RandomRotation";
  explicit RandomRotation(double degrees, const image::RotateOptions& options = {});
  explicit RandomRotation(const Range& degrees, const image::RotateOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  Range degrees_;
  image::RotateOptions options_;
};

struct RandomAffineOptions {
  /// Largest shift to either side, as parts of width and height, each in [0, 1].
  struct Shift {
    double x = 0;
    double y = 0;

    Shift() = default;
    /// Needs both numbers: an aggregate would read `.translate = 0.1` as {0.1, 0}.
    Shift(double x, double y) : x(x), y(y) {}
    bool operator==(const Shift&) const = default;
  };
  Shift translate{};
  Range scale{1, 1};    ///< above 0
  Range shear_x{0, 0};  ///< degrees, along the x axis
  Range shear_y{0, 0};  ///< degrees, along the y axis
  image::Interpolation interpolation = image::Interpolation::kNearest;
  image::Fill fill{};
  std::optional<image::PointF> center{};  ///< none: the middle of the picture
};

/// Rotates (clockwise, as torchvision's affine does), shifts by whole pixels, scales and shears.
/// Each draws a number from its range; an option at its default draws nothing.
///
///     RandomAffine(15, {.translate = {0.1, 0.1}, .scale = {0.8, 1.2}})
///
/// Source: torchvision 0.29 RandomAffine. (Paddle rounds shifts towards 0, torchvision to nearest.)
/// Errors: UsageError naming the option that is out of range.
class RandomAffine final {
 public:
  static constexpr std::string_view kName = "RandomAffine";
  explicit RandomAffine(double degrees, const RandomAffineOptions& options = {});
  explicit RandomAffine(const Range& degrees, const RandomAffineOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] image::AffineOptions draw(image::Size size, data::Random& random) const;

 private:
  Range degrees_;
  RandomAffineOptions options_;
};

struct RandomPerspectiveOptions {
  /// 0: no distortion; 1: each corner may move to the middle of the picture.
  double distortion_scale = 0.5;
  double p = 0.5;
  image::Interpolation interpolation = image::Interpolation::kBilinear;
  image::Fill fill{};
};

/// Moves the four corners inwards by whole pixels, with probability p.
///
/// Source: torchvision 0.29 RandomPerspective, with its defaults (Paddle's interpolation is
/// nearest).
/// Errors: UsageError naming the option that is out of range.
class RandomPerspective final {
 public:
  static constexpr std::string_view kName = "RandomPerspective";
  explicit RandomPerspective(const RandomPerspectiveOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  using Corners = std::array<image::PointF, 4>;  ///< clockwise from the top left
  /// Returns the new places of the corners of a picture of this size, for a case in which p has
  /// decided to move them.
  [[nodiscard]] Corners draw(image::Size size, data::Random& random) const;

 private:
  RandomPerspectiveOptions options_;
};

}  // namespace argosy::vision
