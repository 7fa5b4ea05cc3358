#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/image/color.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/picture.h"

// Transforms from images to a model's input. They leave points alone.
namespace argosy::vision {

/// Returns the picture as a tensor [channels, height, width] of f32: u8 divided by 255, f32
/// unchanged.
/// Source: torchvision's and Paddle's ToTensor, bit for bit.
class ToTensor final {
 public:
  static constexpr std::string_view kName = "ToTensor";
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] static std::string to_string() { return "ToTensor()"; }
};

/// Permutes the picture's dimensions; values and type stay. By default, an image (height, width,
/// channels) becomes a tensor [channels, height, width].
///
/// The order of an image's dimensions is (height, width, channels), that of a tensor its own. If
/// the channels do not come first in the result, it is no longer an image, and later transforms
/// throw.
/// Source: Paddle's Transpose. Errors: UsageError unless `order` holds 0, 1 and 2.
class Transpose final {
 public:
  static constexpr std::string_view kName = "Transpose";
  explicit Transpose(const std::array<int, 3>& order = {2, 0, 1});
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

  /// True if it makes a CHW tensor of an image.
  [[nodiscard]] bool makes_chw() const { return order_ == std::array<int, 3>{2, 0, 1}; }

 private:
  std::array<int, 3> order_;
};

struct NormalizeOptions {
  /// The scale of mean and std for u8 pixels: 0 to 1, or with kNone 0 to 255, as in Paddle's
  /// Normalize of arrays (means like 127.5). f32 is taken as it is.
  image::Scale scale = image::Scale::kUnit;
  /// The channel order of three constants. A picture in another order is an error.
  image::Order order = image::Order::kRgb;
};

/// Computes (value - mean) / std for each channel, in f32.
///
///     Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})   // ImageNet's, of [0, 1]
///     Normalize(0.1307, 0.3081)                                 // all channels alike
///
/// Takes f32 as it is, and u8 scaled to [0, 1]. So it works before ToTensor(), after it and without
/// it. An image becomes an f32 image, a tensor an f32 tensor.
/// Source: torchvision's and Paddle's normalize, bit for bit.
/// Errors: UsageError for a std of 0; for a number of constants other than 1 and the number of
/// channels; for BGR if the constants are for RGB; and for means above 1 on u8 pixels scaled to 1,
/// which are meant for 0 to 255.
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
  /// One constant per channel of the order. Errors: UsageError, as for the call.
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
