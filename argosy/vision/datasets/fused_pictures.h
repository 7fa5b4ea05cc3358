#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/random.h"
#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/image/normalise.h"
#include "argosy/vision/transforms/compose.h"
#include "argosy/vision/transforms/fused.h"

// Internal to the data sets.
namespace argosy::vision {

/// Where the values of one picture go: f32 at
/// first + channel × channel_stride + y × row_stride, pixels of a row side by side.
struct PictureTarget {
  float* first = nullptr;
  int64_t channel_stride = 0;  ///< 1: the channels of a pixel side by side; or a plane's size
  int64_t row_stride = 0;
};

/// That of an f32 tensor [C, H, W], row-major or channels_last.
[[nodiscard]] PictureTarget target_of(const at::Tensor& chw);

/// A chain that is run in one pass over a stored picture.
///
/// Thread-safe: everything is const; the decoder and the resampler are the calling thread's.
class FusedPictures final {
 public:
  /// nullptr when the chain cannot be run so: see recognise(); or when its results are u8 or differ
  /// in size.
  [[nodiscard]] static std::unique_ptr<const FusedPictures> make(const Compose& chain,
                                                                 image::Order order);

  /// Of a result: {C, H, W}.
  [[nodiscard]] std::vector<int64_t> sizes() const;
  /// Draws from `random` what the chain would draw. Errors: DataError with the picture's name.
  void write(const datasets::Source& source,
             const datasets::Sample& sample,
             data::Random& random,
             const PictureTarget& target) const;

 private:
  FusedPictures(FusedPlan plan, image::Order order, const image::Normalisation& arithmetic);
  class Pass;

  FusedPlan plan_;
  image::Order order_;
  image::Normaliser normalise_;
  std::vector<uint8_t> border_;  // a pixel beyond the picture's edges
};

}  // namespace argosy::vision
