#pragma once

#include <string>

#include "argosy/vision/datasets/labelled_pictures.h"

namespace argosy::vision {

/// Labelled pictures out of one record file, which `argosy data pack` writes from any other set:
/// read through a mapping, with a checksum for each sample, by any number of processes.
///
///     vision::PackedPictures train("flowers.rec", {.transform = augment});
///
/// Errors: DataError with path and index: no record file of samples, torn, damaged.
class PackedPictures final : public LabelledPictures {
 public:
  explicit PackedPictures(const std::string& path, PictureOptions options = {});
};

}  // namespace argosy::vision
