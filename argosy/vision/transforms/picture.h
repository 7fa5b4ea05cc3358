#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <ATen/core/Tensor.h>

#include "argosy/image/geometry.h"
#include "argosy/image/image.h"

namespace argosy::vision {

/// A tensor [channels, height, width] that knows what its channels are.
struct TensorImage {
  at::Tensor chw;                       ///< on the CPU; the transforms take u8 and f32
  std::optional<image::Order> order{};  ///< nullopt: unknown, after a user's function
};

/// An image with points on it, as a data set of keypoints gives it to a chain.
struct KeypointImage {
  image::Image image;
  /// f32 [K, 2]: x to the right, y down, in pixels. (0, 0) is the centre of the left upper pixel,
  /// as columns and rows count. NaN: unknown.
  at::Tensor points;
};

/// The result of a chain for a KeypointImage: auto [image, points] = augment(sample, random).
struct KeypointTensor {
  at::Tensor image;   ///< [channels, height, width]
  at::Tensor points;  ///< f32 [K, 2], in pixels of `image`
};

/// The value that transforms pass on: an image (HWC) or a CHW tensor, either with its channel
/// order, and the points on it if there are any. ToTensor turns the one into the other, so each
/// step asks which it has. A step that cannot work with its input throws an error that names the
/// step.
///
///     vision::Picture flipped = vision::RandomHorizontalFlip(1)(image, random);
///     use(flipped.image(), flipped.points());
///
/// A value. Tensor pixels and points are shared, as tensors are, and never written to.
/// Errors: UsageError for a tensor that is not [1, 3 or 4, H, W], and for points that are not f32
/// [K, 2].
class Picture final {
 public:
  Picture(image::Image image);         // NOLINT(google-explicit-constructor)
  Picture(TensorImage tensor);         // NOLINT(google-explicit-constructor)
  Picture(KeypointImage with_points);  // NOLINT(google-explicit-constructor)
  /// 1 channel is gray, 3 are RGB, 4 are RGBA. For other orders use a TensorImage.
  Picture(at::Tensor chw);  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_image() const { return std::holds_alternative<image::Image>(pixels_); }
  /// Errors: UsageError if it holds the other kind.
  [[nodiscard]] const image::Image& image() const&;
  [[nodiscard]] image::Image image() &&;
  [[nodiscard]] const TensorImage& tensor() const;
  /// Moves the image out; set_image() must replace it.
  [[nodiscard]] image::Image take_image();

  /// Returns height and width of the image or tensor. Errors: UsageError for a tensor that is no
  /// longer an image.
  [[nodiscard]] image::Size size() const;
  [[nodiscard]] std::optional<image::Order> order() const;
  /// Undefined if there are no points.
  [[nodiscard]] const at::Tensor& points() const { return points_; }

  /// Replaces the pixels and keeps the points.
  void set_image(image::Image image) { pixels_ = std::move(image); }
  void set_tensor(TensorImage tensor);
  /// Errors: UsageError unless `points` is undefined or f32 [K, 2].
  void set_points(at::Tensor points);
  /// Moves the points if there are any; NaN stays NaN. `map` counts from the corner of the left
  /// upper pixel, as room image does.
  void map_points(const image::PointMap& map);

  /// Returns a description for messages: "an image of 480 x 640 pixels (RGB, u8)", "a tensor [3,
  /// 224, 224] (RGB, f32)".
  [[nodiscard]] std::string describe() const;

 private:
  std::variant<image::Image, TensorImage> pixels_;
  at::Tensor points_{};
};

/// Returns the channel order of a CHW tensor whose maker gave none: 1 is gray, 3 RGB, 4 RGBA,
/// otherwise nullopt.
[[nodiscard]] std::optional<image::Order> usual_order(const at::Tensor& chw);

/// Returns the image as a CHW tensor of the same type and values.
[[nodiscard]] at::Tensor to_chw(const image::Image& image);

/// Returns the tensor as an image of the same type and values.
/// Errors: UsageError `[where] …` unless it is u8 or f32 on the CPU with a known order.
[[nodiscard]] image::Image to_hwc(const TensorImage& tensor, std::string_view where);

}  // namespace argosy::vision
