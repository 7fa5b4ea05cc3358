#pragma once

#include <string>

#include "argosy/vision/datasets/labelled_pictures.h"
#include "argosy/vision/split.h"

namespace argosy::vision {

/// CIFAR-10: 50,000 training and 10,000 test pictures of 32 × 32, ten classes.
///
///     vision::Cifar10 train("cifar-10-python.tar.gz", vision::Split::kTrain,
///                           {.transform = {RandomCrop(32, {.padding = 4}), RandomHorizontalFlip(),
///                                          ToTensor(), Normalize(0.5, 0.5)}});
///
/// `path`: the archive as published, Python's or the binary one, .tar.gz or .tar, nothing is
/// unpacked to disk; or the folder with its batches, or with the archive.
/// All pictures are read at construction and stay in memory (184 MB for 60,000). Batches of any
/// length will do.
/// Errors: DataError with path and place (member, offset, index): no such file, neither of the two
/// forms, truncated or damaged, a label out of range. UsageError for Split::kValid, which the set
/// does not have.
/// Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009; Paddle's
/// and torchvision's CIFAR10 read the Python form.
class Cifar10 final : public LabelledPictures {
 public:
  Cifar10(const std::string& path, Split split, PictureOptions options = {});
};

struct Cifar100Options {
  Compose transform{};  ///< see PictureOptions
  /// Which of a picture's two labels counts: one of 100 classes, or of 20 that group them.
  enum class Labels : uint8_t { kFine, kCoarse };
  Labels labels = Labels::kFine;
};

/// CIFAR-100: the same with 100 classes in 20 groups.
class Cifar100 final : public LabelledPictures {
 public:
  Cifar100(const std::string& path, Split split, Cifar100Options options = {});
};

}  // namespace argosy::vision
