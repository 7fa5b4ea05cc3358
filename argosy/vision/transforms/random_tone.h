#pragma once

#include <string>
#include <string_view>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/ranges.h"

// Functions of argosy/image/color.h and filter.h, applied by chance. Names and defaults are
// torchvision's. Those headers describe the parameters.
namespace argosy::vision {

/// Inverts all values with probability p.
class RandomInvert final {
 public:
  static constexpr std::string_view kName = "RandomInvert";
  explicit RandomInvert(double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  double p_;
};

/// Keeps the `bits` (1 to 8) highest bits of each u8 value, with probability p.
class RandomPosterize final {
 public:
  static constexpr std::string_view kName = "RandomPosterize";
  explicit RandomPosterize(int bits, double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  int bits_;
  double p_;
};

/// Inverts values of at least `threshold` (0 to 255; f32: 0 to 1), with probability p.
/// Errors: at the call for f32 and a threshold above 1, as in torchvision.
class RandomSolarize final {
 public:
  static constexpr std::string_view kName = "RandomSolarize";
  explicit RandomSolarize(double threshold, double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  double threshold_;
  double p_;
};

/// Stretches each channel to the whole range, with probability p.
class RandomAutocontrast final {
 public:
  static constexpr std::string_view kName = "RandomAutocontrast";
  explicit RandomAutocontrast(double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  double p_;
};

/// Makes all u8 values of a channel about as frequent, with probability p.
class RandomEqualize final {
 public:
  static constexpr std::string_view kName = "RandomEqualize";
  explicit RandomEqualize(double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  double p_;
};

/// Smooths (0 ≤ factor < 1) or sharpens (factor > 1), with probability p.
class RandomAdjustSharpness final {
 public:
  static constexpr std::string_view kName = "RandomAdjustSharpness";
  explicit RandomAdjustSharpness(double factor, double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  double factor_;
  double p_;
};

/// Blurs with a Gaussian of `kernel` × `kernel` pixels. Its standard deviation, in pixels, is drawn
/// from `sigma`.
///
///     GaussianBlur(23, {0.1, 2.0})
///
/// Errors: UsageError for a kernel that is not odd and positive, or a sigma that is not above 0.
class GaussianBlur final {
 public:
  static constexpr std::string_view kName = "GaussianBlur";
  explicit GaussianBlur(int kernel, const Range& sigma = {0.1, 2.0});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  int kernel_;
  Range sigma_;
};

}  // namespace argosy::vision
