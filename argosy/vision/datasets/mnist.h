#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/random.h"
#include "argosy/vision/split.h"

namespace argosy::vision {

/// What get() gives.
struct LabelledImage {
  at::Tensor image;  ///< f32 [1, 28, 28]
  at::Tensor label;  ///< i64, no dimensions
};

/// How images leave the data set.
struct MnistOptions {
  /// A pixel becomes (pixel / 255 - mean) / std, in f32, as torchvision's ToTensor and Normalize
  /// give it. The default is [0, 1], ToTensor alone. (Paddle's data set gives 0 to 255 until its
  /// ToTensor is used.) Usual values: MNIST 0.1307 and 0.3081, Fashion-MNIST 0.2860 and 0.3530.
  double mean = 0.0;
  double std = 1.0;  ///< above 0
  /// Called for each sample with the normalised image and the sample's own random stream; what it
  /// returns becomes LabelledImage::image. Called from several loader threads at once.
  std::function<at::Tensor(const at::Tensor& image, data::Random& random)> transform{};
};

namespace detail {
struct MnistFlavour;  // what Mnist and FashionMnist differ in
}

/// 28×28 grey images with labels 0 to 9 out of the four IDX files of MNIST's format.
///
/// Both files are read at construction and stay in memory as bytes (47 MB for 60,000 images). A
/// copy shares them. A data::Dataset with the fast path; thread-safe: everything is const.
class MnistImages {
 public:
  [[nodiscard]] int64_t size() const;
  /// The sample with transform and normalisation applied. `random` serves the transform.
  /// Errors: UsageError when the index is outside [0, size()).
  [[nodiscard]] LabelledImage get(int64_t index, data::Random& random) const;
  /// The same for data sets without a transform; UsageError with one.
  [[nodiscard]] LabelledImage get(int64_t index) const;

  /// Images f32 [n, 1, 28, 28] (without a transform) and labels i64 [n], in the context's memory.
  /// Errors: as get(); what a transform throws becomes a DataError with the sample's index.
  /// Cost: 0.3 µs a sample without a transform: one pass, no tensor per sample.
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;

  /// Pixels as stored: u8 [N, 28, 28], shared, not to be written.
  [[nodiscard]] const at::Tensor& images() const;
  /// i64 [N], shared, not to be written.
  [[nodiscard]] const at::Tensor& labels() const;
  /// Names of the ten classes, as torchvision spells them.
  [[nodiscard]] std::span<const std::string_view> classes() const;

 protected:
  MnistImages(const std::string& folder,
              Split split,
              MnistOptions options,
              const detail::MnistFlavour& flavour);

 private:
  struct State;
  void check_index(int64_t index) const;
  void write_image(int64_t index, float* out) const;
  [[nodiscard]] at::Tensor transformed_batch(std::span<const int64_t> indices,
                                             const data::BatchContext& context) const;
  std::shared_ptr<const State> state_;
};

/// Zalando's Fashion-MNIST: 60,000 training and 10,000 test images of clothes.
///
///     vision::FashionMnist train("/usr/share/datasets/fashion-mnist", vision::Split::kTrain);
///     auto [image, label] = train.get(0);
///
/// `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte and the two of t10k-…, plain or
/// with .gz; Debian's package dataset-fashion-mnist brings them. torchvision's folder (its `root`,
/// with FashionMNIST/raw inside) works too.
/// Errors: DataError with path and offset: folder or file missing (says what was looked for),
/// damaged, not 28×28 bytes, numbers of images and labels that differ, a label above 9. UsageError
/// for Split::kValid, which the data set does not have.
class FashionMnist final : public MnistImages {
 public:
  FashionMnist(const std::string& folder, Split split, MnistOptions options = {});
};

/// MNIST: 60,000 training and 10,000 test images of handwritten digits. Otherwise as FashionMnist;
/// torchvision's folder has MNIST/raw inside.
class Mnist final : public MnistImages {
 public:
  Mnist(const std::string& folder, Split split, MnistOptions options = {});
};

}  // namespace argosy::vision
