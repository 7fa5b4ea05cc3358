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

/// The content of an erased box.
enum class EraseWith : uint8_t {
  kValue,  ///< RandomErasingOptions::value
  kNoise   ///< random values: f32 standard normal, u8 evenly from all 256
};

struct RandomErasingOptions {
  double p = 0.5;
  Range scale{0.02, 0.33};  ///< part of the picture's area, within [0, 1]
  Range ratio{0.3, 3.3};    ///< height / width of the box, above 0
  EraseWith with = EraseWith::kValue;
  image::Fill value{};  ///< in the picture's own numbers: 0 is the mean after Normalize
};

/// Overwrites a random box of the picture with probability p; points stay as they are.
///
/// Takes images and tensors, u8 and f32 (torchvision: tensors alone). If no box fits in ten draws,
/// the picture stays as it is.
/// Source: Zhong et al., "Random erasing data augmentation", AAAI 2020; the algorithm of
/// torchvision 0.29 RandomErasing, which is also Paddle's. Noise in u8 is ours: torchvision casts
/// normal numbers to bytes, Paddle multiplies them by 255.
/// Errors: UsageError naming the option that is out of range.
class RandomErasing final {
 public:
  static constexpr std::string_view kName = "RandomErasing";
  explicit RandomErasing(const RandomErasingOptions& options = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  /// Returns the box to overwrite in a picture of this size, for a case in which p has decided to
  /// overwrite. nullopt: none fits.
  [[nodiscard]] std::optional<image::Box> draw(image::Size size, data::Random& random) const;

 private:
  RandomErasingOptions options_;
};

}  // namespace argosy::vision
