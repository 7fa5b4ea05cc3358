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

/// The form in which pictures are kept in memory once they were read.
enum class Keep : uint8_t {
  kNothing,
  kEncoded,  ///< as they are, which saves reading the disk
  /// Decoded in full. It saves the codec too, and takes ten times the memory of a JPEG or more. A
  /// crop then has the pixels of the plain chain, even if a JPEG would otherwise be reduced while
  /// it is decoded.
  kDecoded
};

/// The cache of a data set that reads from the disk. It keeps the first pictures that are read, as
/// long as the data set lives. Crops and flips are still drawn anew each time, and chains still run
/// in one pass.
struct PictureCache {
  Keep keep = Keep::kNothing;
  /// Memory for all kept pictures. Once it is used up, no more are kept. Decoded pictures beyond it
  /// are decoded in full each time, so that no pixel depends on which came first.
  int64_t max_bytes = int64_t{1} << 30;
};

/// The unit of the points in targets.
enum class PointUnit : uint8_t {
  kPixels,  ///< pixels of the picture that get() returns: f32 [K, 2], x then y
  kSides    ///< its width and its height are 1: f32 [2 K], x0, y0, x1, y1 …
};

/// The form of a data set's samples. Every set takes these options.
struct PictureOptions {
  /// Applied to each picture, with the sample's own random stream. Without one a picture is f32 [C,
  /// H, W] from 0 to 1, and pictures of several sizes cannot form a batch. Use {Transpose()} for
  /// bytes.
  Compose transform{};
  /// Without a transform a value becomes (value - mean) / std: one number, or one for each
  /// channel. Empty: 0 and 1.
  std::vector<double> mean{};
  std::vector<double> std{};
  /// The order that the transform gets, whatever is stored: kRgb, C = 3, or kGray, C = 1. Unset:
  /// the set's own.
  std::optional<image::Order> order{};
  PictureCache cache{};  ///< by default nothing is kept
  int64_t label = 0;  ///< which of a picture's labels to use: for CIFAR-100, 0 is fine and 1 coarse
  PointUnit points_in = PointUnit::kPixels;
  datasets::OpenOptions open{};  ///< how the set is opened; the path is the constructor's
};

/// A sample that get() returns.
struct Example {
  at::Tensor image;   ///< [C, H, W]
  at::Tensor target;  ///< i64 [], f32 [classes] of 0 and 1, or f32 [K, 2]: see PictureDataset
};

/// A sample before any transform.
struct StoredExample {
  image::Image picture{};         ///< decoded to the options' order
  std::vector<int64_t> labels{};  ///< as in datasets::Sample
  std::vector<float> points{};    ///< x, y, x, y … in pixels of the picture
  std::string name{};             ///< name of its file, if there is one
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
/// Draws and pixels are the chain's. Pixels differ only where a JPEG is reduced while it is decoded
/// (the crop has twice the wanted rows and columns, or more): see docs/guides/images.md.
///
/// A sample's random stream is keyed by its place in the whole set, and errors name it by that.
/// A picture whose file ends early is an error; other damage in a JPEG is accepted, as by Pillow
/// and torchvision: see image::Damaged. The loader's on_error passes over or replaces such samples.
///
/// A data::Dataset with the fast path. A value; copies share everything. Thread-safe: everything
/// is const.
class PictureDataset {
 public:
  /// Takes the split of that name. Empty: all samples of all splits.
  /// Errors: UsageError for an unknown split, naming the existing ones, and for options that no
  /// picture can have.
  PictureDataset(std::shared_ptr<const datasets::Source> source,
                 std::string_view split,
                 PictureOptions options = {});
  /// Opens a set at `path`. Empty: the place to which `argosy data fetch` brings it.
  PictureDataset(const datasets::Row& set,
                 const std::string& path,
                 std::string_view split,
                 PictureOptions options = {});
  PictureDataset(const datasets::Row& set,
                 const std::string& path,
                 Split split,
                 PictureOptions options = {});

  [[nodiscard]] int64_t size() const;
  /// Returns a sample.
  /// Errors: UsageError when the index is outside [0, size()); DataError with index and name for a
  /// picture that cannot be read or decoded, and for a label outside the classes.
  [[nodiscard]] Example get(int64_t index, data::Random& random) const;
  /// Returns a sample if the transform draws nothing. Errors: as above; UsageError if it draws.
  [[nodiscard]] Example get(int64_t index) const;
  /// Returns images [n, C, H, W] in the context's memory and memory format, and the targets [n, …].
  /// Errors: as for get(); DataError for a picture whose shape differs from the batch's first.
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;
  /// Returns the sample's place in the whole set.
  [[nodiscard]] int64_t sample_key(int64_t index) const;
  [[nodiscard]] int64_t key_space() const;

  [[nodiscard]] StoredExample stored(int64_t index) const;
  [[nodiscard]] image::Image picture(int64_t index) const { return stored(index).picture; }
  [[nodiscard]] std::string name(int64_t index) const;
  /// Returns the labels of all samples. They are read once, at the first call.
  /// Errors: UsageError for a set whose samples do not have one class each.
  [[nodiscard]] const std::vector<int64_t>& labels() const;
  /// Returns the targets of all samples as get() returns them without a transform: [size(), …].
  [[nodiscard]] at::Tensor targets() const;
  /// Returns all pictures as they are stored: u8 [size(), C, H, W].
  /// Errors: UsageError for a set whose pictures are not pixels of one size.
  [[nodiscard]] at::Tensor pixels() const;
  /// Returns a name for each class, in the order of the labels.
  [[nodiscard]] const std::vector<std::string>& classes() const;
  /// Returns the names of the keypoints: "left_eye_center".
  [[nodiscard]] const std::vector<std::string>& point_names() const;
  [[nodiscard]] const datasets::Source& source() const;
  /// Returns the figures of PictureOptions::cache. Zeros: nothing is kept.
  [[nodiscard]] data::CacheStats cache_stats() const;

 private:
  struct State;
  void check_index(int64_t index) const;
  std::shared_ptr<const State> state_;
};

}  // namespace argosy::vision
