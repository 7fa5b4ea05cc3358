#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/vision/datasets/one_pass.h"
#include "argosy/vision/datasets/picture_dataset.h"

// Internal to the data sets.
namespace argosy::vision {

/// Pictures without a transform: each byte p becomes (p / full - mean) / std, in f32, with the bits
/// of torchvision's ToTensor and Normalize. A value.
class PlainPictures final {
 public:
  /// Errors: UsageError for mean and std that do not fit, or that come together with a transform.
  PlainPictures(const PictureOptions& options, image::Order order, const datasets::About& about);

  /// Returns a picture of the order as a tensor [C, H, W].
  [[nodiscard]] at::Tensor tensor_of(const image::Image& picture) const;
  /// Returns one for sets whose pictures all have this size.
  [[nodiscard]] std::unique_ptr<const OnePass> of_one_size(image::Size size) const;

 private:
  class OfOneSize;
  using Table = std::array<float, 256>;  ///< the value that each byte becomes

  void write(const uint8_t* pixels, image::Size size, const PictureTarget& target) const;

  image::Order order_;
  std::vector<Table> tables_{};  ///< one for each channel
};

}  // namespace argosy::vision
