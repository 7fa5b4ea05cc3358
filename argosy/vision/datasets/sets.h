#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "argosy/datasets/sets.h"
#include "argosy/vision/datasets/picture_dataset.h"

/// The data sets of pictures by name. Each is a PictureDataset of its row in argosy/datasets, which
/// documents its files. All take the same options. An empty path means the place to which `argosy
/// data fetch` brings the set.
namespace argosy::vision {

/// MNIST: 60,000 + 10,000 handwritten digits of 28 × 28, gray, from four IDX files.
///
///     vision::Mnist train("data/mnist", vision::Split::kTrain, {.mean = {0.1307}, .std = {0.3081}});
class Mnist final : public PictureDataset {
 public:
  Mnist(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::mnist(), path, split, std::move(options)) {}
};

/// Zalando's Fashion-MNIST: as MNIST, with clothes. The usual mean and deviation are 0.2860 and
/// 0.3530.
class FashionMnist final : public PictureDataset {
 public:
  FashionMnist(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::fashion_mnist(), path, split, std::move(options)) {}
};

/// MNIST in the form of Paddle's tutorials: mnist.json.gz with train, valid and test.
class MnistJson final : public PictureDataset {
 public:
  MnistJson(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::mnist_json(), path, split, std::move(options)) {}
};

/// CIFAR-10: 50,000 + 10,000 photographs of 32 × 32, RGB, ten classes.
///
///     vision::Cifar10 train("cifar-10-python.tar.gz", vision::Split::kTrain,
///                           {.transform = {RandomCrop(32, {.padding = 4}), RandomHorizontalFlip(),
///                                          ToTensor(), Normalize(0.5, 0.5)}});
class Cifar10 final : public PictureDataset {
 public:
  Cifar10(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::cifar10(), path, split, std::move(options)) {}
};

/// CIFAR-100: as CIFAR-10, with 100 classes. `.label = 1` takes their 20 groups.
class Cifar100 final : public PictureDataset {
 public:
  Cifar100(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::cifar100(), path, split, std::move(options)) {}
};

/// SVHN, cropped: 73,257 digits of house numbers for training and 26,032 for tests, 32 × 32, RGB,
/// ten classes. datasets::open("svhn") also gives "extra". A file is read at the first access to
/// its split, so that nobody pays for the 1.6 GB of extra_32x32.mat who does not ask for them.
class Svhn final : public PictureDataset {
 public:
  Svhn(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::svhn(), path, split, std::move(options)) {}
};

/// PASCAL VOC 2012, classification: 5,717 photographs for training and 5,823 for validation, with
/// any of 20 classes on each. The target is f32 [20] of 0 and 1, for loss::BCEWithLogits; objects
/// marked difficult do not count.
class Voc2012 final : public PictureDataset {
 public:
  Voc2012(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::voc2012(), path, split, std::move(options)) {}
};

/// Oxford Flowers-102: 8,189 photographs, 102 classes. `.open = {.absent, .splits}`.
class Flowers102 final : public PictureDataset {
 public:
  Flowers102(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(datasets::flowers102(), path, split, std::move(options)) {}
};

/// Faces with points on them, from training.csv of Kaggle's facial-keypoints contest, or from
/// records of it. Faces without all their points are left out unless `.open = {.points}` is set.
///
///     vision::FacialKeypoints faces("training.csv.gz", {.transform = {ToTensor()}});
///     auto [image, points] = faces.get(0);    // f32 [1, 96, 96]; f32 [15, 2] in pixels
class FacialKeypoints final : public PictureDataset {
 public:
  explicit FacialKeypoints(const std::string& path, PictureOptions options = {})
      : PictureDataset(datasets::keypoints(), path, Split::kTrain, dropping(std::move(options))) {}

  /// Returns the face as it is stored: gray u8 [96, 96] and its points.
  [[nodiscard]] KeypointImage at(int64_t index) const;
  /// Returns the K names: "left_eye_center".
  [[nodiscard]] const std::vector<std::string>& names() const { return point_names(); }
  /// Returns the numbers of points that change places in a mirror, for RandomHorizontalFlip's
  /// keypoint_pairs.
  [[nodiscard]] std::vector<std::pair<int64_t, int64_t>> pairs() const;

 private:
  static PictureOptions dropping(PictureOptions options) {
    options.open.points = options.open.points.value_or(Points::kDrop);
    return options;
  }
};

/// Returns the numbers of pairs of names that differ only in "left" and "right".
[[nodiscard]] std::vector<std::pair<int64_t, int64_t>> mirrored_points(
    const std::vector<std::string>& names);

namespace detail {
/// Returns `set`. Errors: DataError when its samples have nothing to learn.
[[nodiscard]] PictureDataset with_targets(PictureDataset set);
}  // namespace detail

/// The set that `path` is recognised as, which may also be records of `argosy data pack`.
///
///     vision::Pictures train("flowers.rec", vision::Split::kTrain, {.transform = augment});
///
/// Without a split it has all samples of all splits. Opening records reads no sample.
class Pictures final : public PictureDataset {
 public:
  explicit Pictures(const std::string& path, PictureOptions options = {})
      : PictureDataset(detail::with_targets(PictureDataset(
            datasets::row_of_path(path), path, std::string_view(), std::move(options)))) {}
  Pictures(const std::string& path, Split split, PictureOptions options = {})
      : PictureDataset(detail::with_targets(
            PictureDataset(datasets::row_of_path(path), path, split, std::move(options)))) {}
};

/// Pictures in a folder for each class: root/CLASS/…/FILE. It is torchvision's ImageFolder, and
/// DatasetFolder of Paddle and torchvision. Classes are the folders' names, sorted.
///
///     vision::DatasetFolder train("pets/train", {.transform = augment});
class DatasetFolder final : public PictureDataset {
 public:
  explicit DatasetFolder(const std::string& root, PictureOptions options = {});
};

/// All pictures under a folder, without labels, for prediction. It is Paddle's ImageFolder.
///
///     vision::ImageFolder photos("holiday", {.transform = resize});
///     for (auto& [images] : data::DataLoader(photos, {.batch_size = 32})) ...
class ImageFolder final {
 public:
  explicit ImageFolder(const std::string& root, PictureOptions options = {})
      : pictures_(datasets::open_files({root}), "", std::move(options)) {}

  [[nodiscard]] int64_t size() const { return pictures_.size(); }
  [[nodiscard]] std::tuple<at::Tensor> get(int64_t index, data::Random& random) const {
    return {pictures_.get(index, random).image};
  }
  [[nodiscard]] std::tuple<at::Tensor> get_batch(std::span<const int64_t> indices,
                                                 const data::BatchContext& context) const {
    return {std::get<0>(pictures_.get_batch(indices, context))};
  }
  /// Returns the file of sample `index`.
  [[nodiscard]] std::string path(int64_t index) const { return pictures_.name(index); }

 private:
  PictureDataset pictures_;
};

}  // namespace argosy::vision
