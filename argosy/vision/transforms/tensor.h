#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/image/color.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/picture.h"

// From images to what a model eats. All of them leave points alone.
namespace argosy::vision {

/// The picture as a tensor [channels, height, width] of f32: u8 divided by 255, f32 as it is.
/// Source: torchvision's and Paddle's ToTensor, each bit.
class ToTensor final {
 public:
  static constexpr std::string_view kName = "ToTensor";
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] static std::string to_string() { return "ToTensor()"; }
};

/// The picture's dimensions in another order, values and type as they are: without arguments an
/// image (height, width, channels) becomes a tensor [channels, height, width].
///
/// An image counts as (height, width, channels), a tensor as it is. If the channels do not come
/// first in the result, it is no image any more, and later transforms say so.
/// Source: Paddle's Transpose. Errors: UsageError unless `order` holds 0, 1 and 2.
class Transpose final {
 public:
  static constexpr std::string_view kName = "Transpose";
  explicit Transpose(const std::array<int, 3>& order = {2, 0, 1});
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  /// Does it make a CHW tensor of an image?
  [[nodiscard]] bool makes_chw() const { return order_ == std::array<int, 3>{2, 0, 1}; }

 private:
  std::array<int, 3> order_;
};

struct NormalizeOptions {
  /// What mean and std are of where u8 pixels are normalized: 0 to 1, or with kNone 0 to 255, as
  /// Paddle's Normalize of arrays has it (means like 127.5). f32 is taken as it is.
  image::Scale scale = image::Scale::kUnit;
  /// The order in which three constants are written. A picture in another order is an error.
  image::Order order = image::Order::kRgb;
};

/// (value - mean) / std for each channel, in f32.
///
///     Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})   // ImageNet's, of [0, 1]
///     Normalize(0.1307, 0.3081)                                 // all channels alike
///
/// Takes f32 as it is, and u8 too, which is scaled to [0, 1] first: so it works with ToTensor()
/// before it, after it and without it. An image stays an image (f32), a tensor a tensor.
/// Source: torchvision's and Paddle's normalize, each bit.
/// Errors: UsageError for a std of 0, for constants that are not as many as the channels (one fits
/// all), for BGR where they are written for RGB, and for means above 1 on u8 pixels scaled to 1:
/// those of 0 to 255 were meant.
class Normalize final {
 public:
  static constexpr std::string_view kName = "Normalize";
  explicit Normalize(double mean = 0.0, double std = 1.0, const NormalizeOptions& options = {});
  Normalize(std::vector<double> mean,
            std::vector<double> std,
            const NormalizeOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] const NormalizeOptions& options() const { return options_; }
  /// One for each channel of the order. Errors: UsageError as of the call.
  struct Constants {
    std::vector<float> mean;
    std::vector<float> std;
  };
  [[nodiscard]] Constants constants(image::Order order, image::Type type) const;

 private:
  std::vector<double> mean_;
  std::vector<double> std_;
  NormalizeOptions options_;
};

}  // namespace argosy::vision
