#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/random.h"
#include "argosy/data/sample_cache.h"
#include "argosy/image/image.h"
#include "argosy/vision/datasets/picture_batches.h"
#include "argosy/vision/transforms/compose.h"

namespace argosy::vision {

/// What get() of a set of labelled pictures gives.
struct LabelledPicture {
  at::Tensor image;   ///< [C, H, W]: what the transform made; without one u8
  int64_t label = 0;  ///< 0 to classes - 1
};

/// How pictures leave a data set.
struct PictureOptions {
  /// Applied to each sample, with the sample's own random stream. Without one a sample is a u8
  /// tensor [C, H, W], and pictures of several sizes make no batch.
  Compose transform{};
  /// What the transform is given, whatever is stored: kRgb, C = 3, or kGray, C = 1.
  image::Order order = image::Order::kRgb;
  PictureCache cache{};  ///< nothing is kept
};

/// Pictures with a class each, RGB unless the options say otherwise: what Cifar10, Flowers102,
/// DatasetFolder and PackedPictures have in common. A data::Dataset with the fast path.
///
///     vision::Flowers102 train(folder, vision::Split::kTrain, {.transform = augment});
///     data::DataLoader loader(train, {.batch_size = 32, .shuffle = true, .num_workers = 2});
///     for (auto& [images, labels] : loader) ...            // f32 [32, 3, 224, 224], i64 [32]
///
/// A picture whose file ends early is an error; other damage in a JPEG is accepted, as by Pillow
/// and torchvision: see image::Damaged. The loader's on_error passes over or replaces such samples.
/// A value; copies share everything. Thread-safe: everything is const.
class LabelledPictures {
 public:
  [[nodiscard]] int64_t size() const;
  /// Errors: UsageError when the index is outside [0, size()); DataError with index and name for a
  /// picture that cannot be read or decoded.
  [[nodiscard]] LabelledPicture get(int64_t index, data::Random& random) const;
  /// The same where the transform draws nothing; UsageError where it does.
  [[nodiscard]] LabelledPicture get(int64_t index) const;
  /// Images [n, C, H, W] in the context's memory and memory format, and labels i64 [n].
  /// Errors: as get(); DataError for a picture of another shape than the batch's first.
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;

  /// The picture as it is stored, decoded to the options' order: before any transform.
  [[nodiscard]] image::Image picture(int64_t index) const;
  /// Of all samples. PackedPictures reads its file for them, once, when they are first asked for.
  [[nodiscard]] const std::vector<int64_t>& labels() const;
  /// What PictureOptions::cache did; zeros where nothing is to be kept.
  [[nodiscard]] data::CacheStats cache_stats() const;
  /// A name for each class, in the order of the labels.
  [[nodiscard]] const std::vector<std::string>& classes() const;

 protected:
  enum class ReadLabels : uint8_t {
    kAtOnce,
    kWithSamples  ///< each with its sample: nothing is read before
  };
  struct Parts {
    const char* where = "";  ///< "vision.Cifar10"
    PicturesOf pictures{};
    std::vector<std::string> classes{};
    PictureOptions options{};
    /// Of sample `index` of the source; empty: the source's label().
    std::function<int64_t(int64_t index)> label{};
    ReadLabels read_labels = ReadLabels::kAtOnce;
  };
  /// Errors: UsageError for an order that is none of the two, or a cache without room; DataError
  /// with path and index for a label that is none of the classes, here or when it is read.
  explicit LabelledPictures(Parts parts);

 private:
  struct State;
  void check_index(int64_t index) const;
  std::shared_ptr<const State> state_;
};

}  // namespace argosy::vision
