#pragma once

#include <string>
#include <string_view>

#include "argosy/data/random.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/ranges.h"

// Transforms of colors. They take the channel order from the picture, leave points alone, and
// accept u8 (0 to 255) and f32 (0 to 1), images and tensors.
namespace argosy::vision {

/// Multiplies all values by a factor drawn from `value`: 0.2 means [0.8, 1.2].
/// Errors (here and for the next three): UsageError for a negative `value` or a negative factor.
class BrightnessTransform final {
 public:
  static constexpr std::string_view kName = "BrightnessTransform";
  explicit BrightnessTransform(const Spread& value);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  Range factor_;
};

/// Moves all values towards or away from the mean of the gray image, by a factor drawn from
/// `value`.
class ContrastTransform final {
 public:
  static constexpr std::string_view kName = "ContrastTransform";
  explicit ContrastTransform(const Spread& value);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  Range factor_;
};

/// Moves all colors towards or away from their gray, by a factor drawn from `value`. Gray stays as
/// it is.
class SaturationTransform final {
 public:
  static constexpr std::string_view kName = "SaturationTransform";
  explicit SaturationTransform(const Spread& value);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  Range factor_;
};

/// Turns all hues by a part of the circle that is drawn from `value`: 0.1 means [-0.1, 0.1]; at
/// most 0.5. Gray stays as it is.
class HueTransform final {
 public:
  static constexpr std::string_view kName = "HueTransform";
  explicit HueTransform(const Spread& value);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  Range shift_;
};

/// A number v means the range [1 - v, 1 + v], for hue [-v, v]. {low, high} is the range itself.
struct ColorJitterOptions {
  Spread brightness = 0.0;
  Spread contrast = 0.0;
  Spread saturation = 0.0;
  Spread hue = 0.0;
};

/// Changes brightness, contrast, saturation and hue, in a new random order for each sample.
///
///     ColorJitter({.brightness = 0.2, .contrast = 0.1, .saturation = 0.1, .hue = 0.1})
///
/// Source: torchvision 0.29 ColorJitter: a permutation of the four, then their factors. A change
/// whose range is its middle alone (the default) is left out and draws nothing. Paddle does the
/// same.
/// Errors: UsageError naming the option that is negative or, for hue, beyond 0.5.
class ColorJitter final {
 public:
  static constexpr std::string_view kName = "ColorJitter";
  explicit ColorJitter(const ColorJitterOptions& options);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  Range brightness_;
  Range contrast_;
  Range saturation_;
  Range hue_;
};

/// Converts the picture to gray, in 1 or 3 equal channels.
/// Errors: UsageError for another number of channels.
class Grayscale final {
 public:
  static constexpr std::string_view kName = "Grayscale";
  explicit Grayscale(int channels = 1);
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

 private:
  int channels_;
};

/// Converts the picture to gray with probability p and keeps its number of channels. Errors:
/// UsageError for RGBA.
class RandomGrayscale final {
 public:
  static constexpr std::string_view kName = "RandomGrayscale";
  explicit RandomGrayscale(double p = 0.1);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  double p_;
};

/// Copies a gray picture into three equal channels, called RGB, for models that need three. The
/// values stay.
/// Errors: UsageError for a number other than 1 or 3, and for a picture that is not gray.
class Repeat final {
 public:
  static constexpr std::string_view kName = "Repeat";
  explicit Repeat(int channels);
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

 private:
  int channels_;
};

/// Converts the picture to another channel order, for example a file's or a camera's BGR for a
/// model trained on RGB. image::convert() says how colors and alpha change.
class ConvertOrder final {
 public:
  static constexpr std::string_view kName = "ConvertOrder";
  explicit ConvertOrder(image::Order order) : order_(order) {}
  [[nodiscard]] Picture operator()(Picture picture) const;
  [[nodiscard]] std::string to_string() const;

 private:
  image::Order order_;
};

}  // namespace argosy::vision
