#pragma once

#include <cstdint>
#include <string>

#include "argosy/datasets/row.h"
#include "argosy/vision/datasets/labelled_pictures.h"
#include "argosy/vision/split.h"

namespace argosy::vision {

using datasets::Absent;
using datasets::FlowersSplits;

struct Flowers102Options {
  Compose transform{};  ///< see PictureOptions
  FlowersSplits splits = FlowersSplits::kPublished;
  Absent absent = Absent::kError;  ///< pictures that the labels name and the archive lacks
  PictureCache cache{};  ///< see PictureOptions; encoded, the pictures lie in memory as it is
};

/// Oxford Flowers-102: 8,189 photographs of some 500 × 600 pixels, 102 classes. Labels are 0 to
/// 101, one less than in the files (and in Paddle's Flowers).
///
///     vision::Flowers102 train("data/flowers", vision::Split::kTrain,
///                              {.transform = {RandomResizedCrop(224), RandomHorizontalFlip(),
///                                             ToTensor(), Normalize(mean, std)}});
///
/// `folder` has 102flowers.tgz (or .tar, which is mapped instead of read), imagelabels.mat and
/// setid.mat. The archive's JPEGs stay in memory as they are (330 MB of the whole set); nothing is
/// unpacked to disk.
/// Errors: DataError with path and place: a file that is not there or damaged, a label outside of 1
/// to 102, pictures that are missing (how many).
/// Source: M. Nilsback, A. Zisserman, "Automated flower classification over a large number of
/// classes", 2008.
class Flowers102 final : public LabelledPictures {
 public:
  Flowers102(const std::string& folder, Split split, Flowers102Options options = {});
};

}  // namespace argosy::vision
