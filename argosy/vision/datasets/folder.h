#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/vision/datasets/labelled_pictures.h"

namespace argosy::vision {

/// Pictures in a folder for each class: root/CLASS/**/FILE. torchvision's ImageFolder, and Paddle's
/// and torchvision's DatasetFolder.
///
///     vision::DatasetFolder train("pets/train", {.transform = augment});
///     train.classes();                                   // {"cat", "dog"}: the folders, sorted
///
/// Files are those whose names end in .jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp, in upper or
/// lower case, by class, then by path; they are listed at construction and read when wanted.
/// Errors: DataError with the path: no such folder, no class, a class without pictures, a file that
/// cannot be read or decoded.
class DatasetFolder final : public LabelledPictures {
 public:
  explicit DatasetFolder(const std::string& root, PictureOptions options = {});
};

/// All pictures under a folder, without labels: Paddle's ImageFolder, for prediction.
///
///     vision::ImageFolder photos("holiday", {.transform = resize});
///     for (auto& [images] : data::DataLoader(photos, {.batch_size = 32})) ...
///
/// A data::Dataset; otherwise as DatasetFolder.
class ImageFolder final {
 public:
  explicit ImageFolder(const std::string& root, PictureOptions options = {});

  [[nodiscard]] int64_t size() const { return batches_->size(); }
  [[nodiscard]] std::tuple<at::Tensor> get(int64_t index, data::Random& random) const;
  [[nodiscard]] std::tuple<at::Tensor> get_batch(std::span<const int64_t> indices,
                                                 const data::BatchContext& context) const;
  /// Which file sample `index` is.
  [[nodiscard]] std::string path(int64_t index) const;

 private:
  void check_index(int64_t index) const;
  std::shared_ptr<const datasets::Source> source_;
  std::shared_ptr<const PictureBatches> batches_;
};

}  // namespace argosy::vision
