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
  std::optional<image::Order> order{};  ///< none: a user's function made something else of it
};

/// An image with points on it: what a data set of keypoints gives to a chain.
struct KeypointImage {
  image::Image image;
  /// f32 [K, 2]: x to the right, y down, in pixels; (0, 0) is the centre of the left upper pixel,
  /// as columns and rows count. NaN: not known.
  at::Tensor points;
};

/// What a chain makes of a KeypointImage: auto [image, points] = augment(sample, random).
struct KeypointTensor {
  at::Tensor image;   ///< [channels, height, width]
  at::Tensor points;  ///< f32 [K, 2], in pixels of `image`
};

/// What flows from one transform to the next: an image (HWC) or a CHW tensor, either with its
/// channel order, and the points on it where there are any. Which of the two it is changes on the
/// way (ToTensor), so a step asks; a step that cannot work with what it is given says so by name
/// instead of computing something else.
///
///     vision::Picture flipped = vision::RandomHorizontalFlip(1)(image, random);
///     use(flipped.image(), flipped.points());
///
/// A value; pixels of a tensor and points are shared as tensors are and never written to.
/// Errors: UsageError for a tensor that is no [1, 3 or 4, H, W], for points that are no f32 [K, 2].
class Picture final {
 public:
  Picture(image::Image image);         // NOLINT(google-explicit-constructor)
  Picture(TensorImage tensor);         // NOLINT(google-explicit-constructor)
  Picture(KeypointImage with_points);  // NOLINT(google-explicit-constructor)
  /// Channels: 1 is gray, 3 RGB, 4 RGBA. Say otherwise with a TensorImage.
  Picture(at::Tensor chw);  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_image() const { return std::holds_alternative<image::Image>(pixels_); }
  /// Errors: UsageError unless it holds what is asked for.
  [[nodiscard]] const image::Image& image() const&;
  [[nodiscard]] image::Image image() &&;
  [[nodiscard]] const TensorImage& tensor() const;
  /// Moves the image out, to be replaced by set_image().
  [[nodiscard]] image::Image take_image();

  /// Height and width, of either. Errors: UsageError for a tensor that is no image any more.
  [[nodiscard]] image::Size size() const;
  [[nodiscard]] std::optional<image::Order> order() const;
  /// Undefined where there are none.
  [[nodiscard]] const at::Tensor& points() const { return points_; }

  /// The same points with other pixels.
  void set_image(image::Image image) { pixels_ = std::move(image); }
  void set_tensor(TensorImage tensor);
  /// Errors: UsageError unless undefined or f32 [K, 2].
  void set_points(at::Tensor points);
  /// Moves the points where there are any; NaN stays NaN. `map` counts from the corner of the left
  /// upper pixel, as room image does.
  void map_points(const image::PointMap& map);

  /// "an image of 480 x 640 pixels (RGB, u8)", "a tensor [3, 224, 224] (RGB, f32)": for messages.
  [[nodiscard]] std::string describe() const;

 private:
  std::variant<image::Image, TensorImage> pixels_;
  at::Tensor points_{};
};

/// The channels of a CHW tensor whose maker did not say: 1 gray, 3 RGB, 4 RGBA, else none.
[[nodiscard]] std::optional<image::Order> usual_order(const at::Tensor& chw);

/// The image as a CHW tensor of the same type, values as they are.
[[nodiscard]] at::Tensor to_chw(const image::Image& image);

/// The tensor as an image of the same type, values as they are.
/// Errors: UsageError `[where] …` unless it is u8 or f32 on the CPU with a known order.
[[nodiscard]] image::Image to_hwc(const TensorImage& tensor, std::string_view where);

}  // namespace argosy::vision
