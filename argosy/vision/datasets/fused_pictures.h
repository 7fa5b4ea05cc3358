#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "argosy/data/random.h"
#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/image/normalize.h"
#include "argosy/vision/datasets/one_pass.h"
#include "argosy/vision/transforms/compose.h"
#include "argosy/vision/transforms/fused.h"

// Internal to the data sets.
namespace argosy::vision {

/// A chain that is run in one pass over a stored picture.
///
/// Thread-safe: everything is const; the decoder and the resampler are the calling thread's.
class FusedPictures final : public OnePass {
 public:
  /// Makes one for a chain. nullptr: the chain cannot run in one pass (see recognise()), or its
  /// results are u8 or differ in size.
  [[nodiscard]] static std::unique_ptr<const FusedPictures> make(const Compose& chain,
                                                                 image::Order order);

  [[nodiscard]] std::vector<int64_t> sizes() const override;
  [[nodiscard]] bool keeps_places(image::Size stored) const override;
  /// Draws from `random` what the chain would draw.
  void write(const datasets::Source& source,
             const datasets::Sample& sample,
             data::Random& random,
             const PictureTarget& target) const override;

 private:
  FusedPictures(FusedPlan plan,
                bool is_random,
                image::Order order,
                const image::Normalization& arithmetic);
  class Pass;

  FusedPlan plan_;
  bool is_random_;
  image::Order order_;
  image::Normalizer normalize_;
  std::vector<uint8_t> border_;  // a pixel beyond the picture's edges
};

}  // namespace argosy::vision
