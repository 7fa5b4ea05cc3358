#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/random.h"
#include "argosy/data/sample_cache.h"
#include "argosy/datasets/row.h"
#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/vision/split.h"
#include "argosy/vision/transforms/compose.h"

namespace argosy::vision {

using datasets::Absent;
using datasets::FlowersSplits;
using datasets::Points;

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

/// In what points of targets are measured.
enum class PointUnit : uint8_t {
  kPixels,  ///< of the picture that get() gives: f32 [K, 2], x then y
  kSides    ///< its width is 1, and so is its height: f32 [2 K], x0, y0, x1, y1 …
};

/// How samples leave a data set: the same options for every set.
struct PictureOptions {
  /// Applied to each picture, with the sample's own random stream. Without one a picture is
  /// f32 [C, H, W] from 0 to 1, and pictures of several sizes make no batch. Bytes: {Transpose()}.
  Compose transform{};
  /// Without a transform a value becomes (value - mean) / std: one number, or one for each
  /// channel. Empty: 0 and 1.
  std::vector<double> mean{};
  std::vector<double> std{};
  /// What the transform is given, whatever is stored: kRgb, C = 3, or kGray, C = 1. Unset: the
  /// set's own.
  std::optional<image::Order> order{};
  PictureCache cache{};  ///< nothing is kept
  int64_t label = 0;     ///< which of a picture's labels: of CIFAR-100 0 is fine and 1 coarse
  PointUnit points_in = PointUnit::kPixels;
  datasets::OpenOptions open{};  ///< how the set is opened; the path is the constructor's
};

/// What get() gives.
struct Example {
  at::Tensor image;   ///< [C, H, W]
  at::Tensor target;  ///< i64 [], f32 [classes] of 0 and 1, or f32 [K, 2]: see PictureDataset
};

/// A sample before any transform.
struct StoredExample {
  image::Image picture{};         ///< decoded to the options' order
  std::vector<int64_t> labels{};  ///< as datasets::Sample
  std::vector<float> points{};    ///< x, y, x, y … in pixels of the picture
  std::string name{};             ///< of its file, where there is one
};

/// The samples of one split of any source, as pictures with targets. Every set of pictures is one
/// of these: see sets.h.
///
///     vision::Flowers102 train(folder, vision::Split::kTrain, {.transform = augment});
///     data::DataLoader loader(train, {.batch_size = 32, .shuffle = true, .num_workers = 2});
///     for (auto& [images, targets] : loader) ...            // f32 [32, 3, 224, 224], i64 [32]
///
/// Targets follow the set's task. One class: i64 [], -1 where the set has no labels. Several
/// classes on a picture: f32 [classes] of 0 and 1, for loss::BCEWithLogits. Points: f32 [K, 2].
///
/// A chain of a crop or resize, flips, ToTensor and Normalize, written plainly, is run in one pass
/// (see recognise() in transforms/fused.h): only what the crop needs is decoded, and each row is
/// resized, flipped, normalized and written to its place in the batch while it is in the cache.
/// Random draws are those of the chain. Its pixels too, except where a JPEG is reduced while it is
/// decoded (the crop has twice the wanted rows and columns, or more): see docs/guides/images.md.
///
/// A sample's random stream is keyed by its place in the whole set, and errors name it by that.
/// A picture whose file ends early is an error; other damage in a JPEG is accepted, as by Pillow
/// and torchvision: see image::Damaged. The loader's on_error passes over or replaces such samples.
///
/// A data::Dataset with the fast path. A value; copies share everything. Thread-safe: everything
/// is const.
class PictureDataset {
 public:
  /// `split`: by its name; empty: all samples of all splits.
  /// Errors: UsageError for a split that is not there, naming those that are, and for options that
  /// no picture can have.
  PictureDataset(std::shared_ptr<const datasets::Source> source,
                 std::string_view split,
                 PictureOptions options = {});
  /// Opens a set at `path`; empty: where `argosy data fetch` brings it.
  PictureDataset(const datasets::Row& set,
                 const std::string& path,
                 std::string_view split,
                 PictureOptions options = {});
  PictureDataset(const datasets::Row& set,
                 const std::string& path,
                 Split split,
                 PictureOptions options = {});

  [[nodiscard]] int64_t size() const;
  /// Errors: UsageError when the index is outside [0, size()); DataError with index and name for a
  /// picture that cannot be read or decoded, and for a label that is none of the classes.
  [[nodiscard]] Example get(int64_t index, data::Random& random) const;
  /// The same where the transform draws nothing; UsageError where it does.
  [[nodiscard]] Example get(int64_t index) const;
  /// Images [n, C, H, W] in the context's memory and memory format, and the targets [n, …].
  /// Errors: as get(); DataError for a picture of another shape than the batch's first.
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;
  /// The sample's place in the whole set.
  [[nodiscard]] int64_t sample_key(int64_t index) const;
  [[nodiscard]] int64_t key_space() const;

  [[nodiscard]] StoredExample stored(int64_t index) const;
  [[nodiscard]] image::Image picture(int64_t index) const { return stored(index).picture; }
  [[nodiscard]] std::string name(int64_t index) const;
  /// Of all samples, read once, when they are first asked for.
  /// Errors: UsageError for a set whose samples have not one class each.
  [[nodiscard]] const std::vector<int64_t>& labels() const;
  /// Of all samples, as get() gives them without a transform: [size(), …].
  [[nodiscard]] at::Tensor targets() const;
  /// All pictures as they are stored: u8 [size(), C, H, W].
  /// Errors: UsageError for a set whose pictures are not pixels of one size.
  [[nodiscard]] at::Tensor pixels() const;
  /// A name for each class, in the order of the labels.
  [[nodiscard]] const std::vector<std::string>& classes() const;
  /// "left_eye_center": of the keypoints.
  [[nodiscard]] const std::vector<std::string>& point_names() const;
  [[nodiscard]] const datasets::Source& source() const;
  /// What PictureOptions::cache did; zeros where nothing is to be kept.
  [[nodiscard]] data::CacheStats cache_stats() const;

 private:
  struct State;
  void check_index(int64_t index) const;
  std::shared_ptr<const State> state_;
};

}  // namespace argosy::vision
