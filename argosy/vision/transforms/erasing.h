#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/data/random.h"
#include "argosy/image/geometry.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/ranges.h"

namespace argosy::vision {

/// What stands in an erased box.
enum class EraseWith : uint8_t {
  kValue,  ///< RandomErasingOptions::value
  kNoise   ///< each value anew: f32 from the standard normal distribution, u8 evenly from all 256
};

struct RandomErasingOptions {
  double p = 0.5;
  Range scale{0.02, 0.33};  ///< part of the picture's area, within [0, 1]
  Range ratio{0.3, 3.3};    ///< height / width of the box, above 0
  EraseWith with = EraseWith::kValue;
  image::Fill value{};  ///< in the picture's own numbers: after Normalize, 0 is the mean
};

/// With probability p overwrites a box somewhere in the picture; points stay as they are.
///
/// Takes images and tensors, u8 and f32 (torchvision: tensors alone). A box that has not fitted
/// after ten draws is none. Source: Zhong et al., "Random erasing data augmentation", AAAI 2020;
/// torchvision 0.29 RandomErasing, whose algorithm this is; Paddle's is the same. Noise in u8 is
/// ours: torchvision casts normal numbers to bytes, Paddle multiplies them by 255. Errors:
/// UsageError naming the option that is out of range.
class RandomErasing final {
 public:
  static constexpr std::string_view kName = "RandomErasing";
  explicit RandomErasing(const RandomErasingOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  /// The box to overwrite in a picture of this size, once p has decided for one.
  [[nodiscard]] std::optional<image::Box> draw(image::Size size, data::Random& random) const;

 private:
  RandomErasingOptions options_;
};

}  // namespace argosy::vision
