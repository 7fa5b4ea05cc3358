#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/random.h"
#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/compose.h"

namespace argosy::vision {

class FusedPictures;

/// In which form pictures are kept in memory once they were read.
enum class Keep : uint8_t {
  kNothing,
  kEncoded,  ///< as they are: saves the disk
  /// Decoded, in full: saves the codec too, takes ten times the memory of a JPEG and more. A crop
  /// then has the pixels of the plain chain, also where a JPEG would be reduced while it is
  /// decoded.
  kDecoded
};

/// What data sets that read from the disk may keep: the first pictures that come, for as long as
/// the data set lives. Crops and flips are drawn anew each time, and chains run in one pass as
/// ever.
struct PictureCache {
  Keep keep = Keep::kNothing;
  /// Of all of them. Once it is used up no more are kept; decoded ones beyond it are decoded in
  /// full each time, so that no pixel depends on which were first.
  int64_t max_bytes = int64_t{1} << 30;
};

/// Samples [first, first + count) of a source, and what becomes of their pictures.
struct PicturesOf {
  std::shared_ptr<const datasets::Source> source{};
  int64_t first = 0;
  int64_t count = 0;
};

/// `order` where it is one that pictures can have here. Errors: UsageError `[where] …`.
[[nodiscard]] image::Order checked_order(const char* where, image::Order order);

/// Turns stored pictures into tensors by a chain of transforms, a whole batch straight into its
/// memory where the chain allows it.
///
/// A chain of a crop or resize, flips, ToTensor and Normalize, written plainly, is run in one pass
/// (see recognise() in transforms/fused.h): only what the crop needs is decoded, and each row is
/// resized, flipped, normalised and written to its place in the batch while it is in the cache.
/// Random draws are those of the chain. Its pixels too, but where a JPEG is reduced while it is
/// decoded (the crop has twice the wanted rows and columns, or more): see docs/guides/images.md.
///
/// Thread-safe: everything is const; each thread keeps a decoder of its own.
class PictureBatches final {
 public:
  /// `order`: what the chain is given, kRgb or kGray, whatever is stored.
  PictureBatches(PicturesOf pictures, Compose transform, image::Order order);
  ~PictureBatches();
  PictureBatches(PictureBatches&&) noexcept;
  PictureBatches& operator=(PictureBatches&&) noexcept;
  PictureBatches(const PictureBatches&) = delete;
  PictureBatches& operator=(const PictureBatches&) = delete;

  [[nodiscard]] int64_t size() const { return pictures_.count; }
  /// The picture as it is stored, decoded. 0 ≤ index < size().
  [[nodiscard]] image::Image picture(int64_t index) const;
  [[nodiscard]] const Compose& transform() const { return transform_; }
  /// Is the chain run in one pass?
  [[nodiscard]] bool fused() const;

  /// One sample: [C, H, W].
  [[nodiscard]] at::Tensor get(int64_t index, data::Random& random) const;
  /// [n, C, H, W] in the context's memory and memory format.
  /// Errors: DataError with the sample's index: cannot be read or decoded, or of another shape than
  /// the batch's first.
  [[nodiscard]] at::Tensor get_batch(std::span<const int64_t> indices,
                                     const data::BatchContext& context) const;

 private:
  [[nodiscard]] image::Image decoded(const datasets::Sample& sample) const;
  [[nodiscard]] at::Tensor fused_batch(std::span<const int64_t> indices,
                                       const data::BatchContext& context) const;
  [[nodiscard]] at::Tensor plain_batch(std::span<const int64_t> indices,
                                       const data::BatchContext& context) const;

  PicturesOf pictures_;
  Compose transform_;
  image::Order order_;
  std::unique_ptr<const FusedPictures> fused_;  // or none
};

}  // namespace argosy::vision
