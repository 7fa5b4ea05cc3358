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

// Transforms that choose a part of the picture or its size. Points move with the pixels; one that
// leaves the picture keeps its coordinates outside of it. Each says what it is going to do without
// doing it (target(), box(), draw()), for a pipeline that does all steps at once (fused.h).
namespace argosy::vision {

struct ResizeOptions {
  image::Interpolation interpolation = image::Interpolation::kBilinear;
  image::Antialias antialias = image::Antialias::kOn;
  /// Limit for the longer edge where the shorter one is given; 0: none.
  int max_size = 0;
};

/// Another size: of both edges, or of the shorter one, the other following in proportion.
///
///     Resize(256)                                     // 500 x 375 becomes 341 x 256
///     Resize({.height = 240, .width = 320})
///
/// Source: torchvision 0.29 (the longer edge is rounded down), Paddle likewise.
/// Errors: UsageError for sizes below 1, for max_size with both edges, or not above the edge.
class Resize final {
 public:
  static constexpr std::string_view kName = "Resize";
  explicit Resize(int shorter_edge, const ResizeOptions& options = {});
  explicit Resize(image::Size size, const ResizeOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  /// The size that a picture of this size becomes.
  [[nodiscard]] image::Size target(image::Size source) const;
  /// The same for every picture, where both edges were given.
  [[nodiscard]] std::optional<image::Size> fixed_size() const {
    return shorter_edge_ == 0 ? std::optional(size_) : std::nullopt;
  }
  [[nodiscard]] const ResizeOptions& options() const { return options_; }

 private:
  int shorter_edge_ = 0;  // 0: size_ counts
  image::Size size_{};
  ResizeOptions options_;
};

/// The middle of the picture. A smaller picture gets a border of zeros, as in torchvision.
class CenterCrop final {
 public:
  static constexpr std::string_view kName = "CenterCrop";
  explicit CenterCrop(int side) : CenterCrop(image::Size{side, side}) {}
  explicit CenterCrop(image::Size size);
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  /// Where it lies in a picture of this size; beyond its edges where that is smaller.
  [[nodiscard]] image::Box box(image::Size source) const;
  [[nodiscard]] image::Size size() const { return size_; }

 private:
  image::Size size_;
};

/// A border around the picture.
///
///     Pad(4)    Pad({4, 2})    Pad({1, 2, 3, 4}, {.mode = image::PadMode::kReflect})
///
/// One number for all sides, two (left and right, top and bottom) or four (left, top, right,
/// bottom), as torchvision and Paddle have them.
///
/// Errors: UsageError for a negative border; at the call for one that a mirror cannot fill.
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
  /// Put around the picture first: 4, {4, 2} or {1, 2, 3, 4}, as of Pad.
  image::Padding padding{};
  /// Whether a picture that is smaller still gets a border wide enough on both sides; else that is
  /// an error.
  bool pad_if_needed = false;
  image::PadMode mode = image::PadMode::kConstant;
  image::Fill fill{};  ///< of the border, in the picture's own numbers
};

/// A part of this size from anywhere in the picture.
///
///     RandomCrop(32, {.padding = 4})   // CIFAR's
///
/// Source: torchvision 0.29; Paddle's is the same.
/// Errors: UsageError for sizes below 1; at the call for a picture that is smaller.
class RandomCrop final {
 public:
  static constexpr std::string_view kName = "RandomCrop";
  explicit RandomCrop(int side, const RandomCropOptions& options = {})
      : RandomCrop(image::Size{side, side}, options) {}
  explicit RandomCrop(image::Size size, const RandomCropOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  struct Draw {
    image::Padding needed;  ///< after options().padding; 0 but for smaller pictures
    image::Box box;         ///< in the padded picture
  };
  /// Errors: UsageError for a picture that is smaller.
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

/// A part of random area and shape, resized: how networks for ImageNet are trained.
///
///     RandomResizedCrop(224)     RandomResizedCrop(224, {.scale = {0.2, 1.0}})
///
/// The part is cut out first, so that nothing beside it has a share in the result.
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

  /// The part to cut out of a picture of this size.
  [[nodiscard]] image::Box draw(image::Size source, data::Random& random) const;
  [[nodiscard]] image::Size size() const { return size_; }
  [[nodiscard]] const RandomResizedCropOptions& options() const { return options_; }

 private:
  image::Size size_;
  RandomResizedCropOptions options_;
};

}  // namespace argosy::vision
