#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argosy/data/random.h"
#include "argosy/image/geometry.h"
#include "argosy/image/image.h"
#include "argosy/image/resize.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/ranges.h"

// Transforms that choose a part of the picture or its size. Points move with the pixels; a point
// that leaves the picture keeps its coordinates outside it. Each transform can return its geometry
// without applying it (target(), box(), draw()), for a pipeline that does all steps at once
// (fused.h).
namespace argosy::vision {

struct ResizeOptions {
  image::Interpolation interpolation = image::Interpolation::kBilinear;
  image::Antialias antialias = image::Antialias::kOn;
  /// Limit for the longer edge if only the shorter one is given; 0: none.
  int max_size = 0;
};

/// Resizes to a size, or scales in proportion so that the shorter edge gets a length.
///
///     Resize(256)                                     // 500 x 375 becomes 341 x 256
///     Resize({.height = 240, .width = 320})
///
/// Source: torchvision 0.29 (the longer edge is rounded down); Paddle's is the same.
/// Errors: UsageError for sizes below 1, and for a max_size given with both edges or not above the
/// shorter one.
class Resize final {
 public:
  static constexpr std::string_view kName = "Resize";
  explicit Resize(int shorter_edge, const ResizeOptions& options = {});
  explicit Resize(image::Size size, const ResizeOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  /// Returns the new size of a picture of this size.
  [[nodiscard]] image::Size target(image::Size source) const;
  /// Returns the size of all results if both edges were given, else nullopt.
  [[nodiscard]] std::optional<image::Size> fixed_size() const {
    return shorter_edge_ == 0 ? std::optional(size_) : std::nullopt;
  }
  [[nodiscard]] const ResizeOptions& options() const { return options_; }

 private:
  int shorter_edge_ = 0;  // 0: size_ applies
  image::Size size_{};
  ResizeOptions options_;
};

/// Cuts out the middle of the picture. A smaller picture gets a border of zeros, as in torchvision.
class CenterCrop final {
 public:
  static constexpr std::string_view kName = "CenterCrop";
  explicit CenterCrop(int side) : CenterCrop(image::Size{side, side}) {}
  explicit CenterCrop(image::Size size);
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  /// Returns its place in a picture of this size. It reaches beyond the edges of a smaller picture.
  [[nodiscard]] image::Box box(image::Size source) const;
  [[nodiscard]] image::Size size() const { return size_; }

 private:
  image::Size size_;
};

/// Puts a border around the picture.
///
///     Pad(4)    Pad({4, 2})    Pad({1, 2, 3, 4}, {.mode = image::PadMode::kReflect})
///
/// Takes one number for all sides, two (left and right, top and bottom) or four (left, top, right,
/// bottom), as torchvision and Paddle do.
///
/// Errors: UsageError for a negative border; at the call for a border that a mirror cannot fill.
class Pad final {
 public:
  static constexpr std::string_view kName = "Pad";
  explicit Pad(int border, const image::PadOptions& options = {})
      : Pad(image::Padding(border), options) {}
  explicit Pad(const image::Padding& padding, const image::PadOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] const image::Padding& padding() const { return padding_; }
  [[nodiscard]] const image::PadOptions& options() const { return options_; }

 private:
  image::Padding padding_;
  image::PadOptions options_;
};

struct RandomCropOptions {
  /// Border that is added first: 4, {4, 2} or {1, 2, 3, 4}, as in Pad.
  image::Padding padding{};
  /// True: a picture that is still smaller gets a border wide enough on both sides. False: it is an
  /// error.
  bool pad_if_needed = false;
  image::PadMode mode = image::PadMode::kConstant;
  image::Fill fill{};  ///< color of the border, in the picture's own numbers
};

/// Cuts out a part of this size at a random place.
///
///     RandomCrop(32, {.padding = 4})   // CIFAR's
///
/// Source: torchvision 0.29; Paddle's is the same.
/// Errors: UsageError for sizes below 1; at the call for a smaller picture.
class RandomCrop final {
 public:
  static constexpr std::string_view kName = "RandomCrop";
  explicit RandomCrop(int side, const RandomCropOptions& options = {})
      : RandomCrop(image::Size{side, side}, options) {}
  explicit RandomCrop(image::Size size, const RandomCropOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  /// One drawn crop.
  struct Draw {
    image::Padding needed;  ///< more border; 0 unless the picture is too small
    image::Box box;         ///< in the padded picture
  };
  /// Errors: UsageError for a smaller picture.
  [[nodiscard]] Draw draw(image::Size source, data::Random& random) const;
  [[nodiscard]] image::Size size() const { return size_; }
  [[nodiscard]] const RandomCropOptions& options() const { return options_; }

 private:
  image::Size size_;
  RandomCropOptions options_;
};

struct RandomResizedCropOptions {
  Range scale{0.08, 1.0};             ///< part of the picture's area, within [0, 1]
  Range ratio{3.0 / 4.0, 4.0 / 3.0};  ///< width / height of the part, above 0
  image::Interpolation interpolation = image::Interpolation::kBilinear;
  image::Antialias antialias = image::Antialias::kOn;
};

/// Cuts out a part of random area and shape and resizes it, the usual training for ImageNet.
///
///     RandomResizedCrop(224)     RandomResizedCrop(224, {.scale = {0.2, 1.0}})
///
/// The part is cut out first, so pixels outside it do not influence the result.
/// Source: Szegedy et al., "Going deeper with convolutions", CVPR 2015; torchvision 0.29: ten draws
/// of area and log-ratio, then the middle of the picture, cut to the nearest ratio.
/// Errors: UsageError naming the option that is out of range.
class RandomResizedCrop final {
 public:
  static constexpr std::string_view kName = "RandomResizedCrop";
  explicit RandomResizedCrop(int side, const RandomResizedCropOptions& options = {})
      : RandomResizedCrop(image::Size{side, side}, options) {}
  explicit RandomResizedCrop(image::Size size, const RandomResizedCropOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  /// Returns the part to cut out of a picture of this size.
  [[nodiscard]] image::Box draw(image::Size source, data::Random& random) const;
  [[nodiscard]] image::Size size() const { return size_; }
  [[nodiscard]] const RandomResizedCropOptions& options() const { return options_; }

 private:
  image::Size size_;
  RandomResizedCropOptions options_;
};

}  // namespace argosy::vision
