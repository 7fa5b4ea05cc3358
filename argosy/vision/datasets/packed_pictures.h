#pragma once

#include <string>

#include "argosy/vision/datasets/labelled_pictures.h"
#include "argosy/vision/split.h"

namespace argosy::vision {

/// Labelled pictures out of one record file, which `argosy data pack` writes from any other set:
/// read through a mapping, with a checksum for each sample, by any number of processes.
///
///     vision::PackedPictures train("flowers.rec", vision::Split::kTrain, {.transform = augment});
///     vision::PackedPictures digits("mnist.rec", Split::kTest, {.order = image::Order::kGray});
///
/// Without a split, all samples of all splits. Opening reads header and index and no sample.
/// Errors: DataError with path and index: no record file of samples, torn, damaged, samples without
/// labels. UsageError for a split that the file does not have, naming those that it has.
class PackedPictures final : public LabelledPictures {
 public:
  explicit PackedPictures(const std::string& path, PictureOptions options = {});
  PackedPictures(const std::string& path, Split split, PictureOptions options = {});

 private:
  PackedPictures(PicturesOf pictures, PictureOptions options);
};

}  // namespace argosy::vision
