#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/random.h"
#include "argosy/datasets/row.h"
#include "argosy/vision/transforms/compose.h"
#include "argosy/vision/transforms/picture.h"

namespace argosy::vision {

using datasets::Points;

struct FacialKeypointsOptions {
  Points points = Points::kDrop;  ///< faces of which not all points are known
  /// Applied to image and points together: a flip moves both.
  Compose transform{};
};

/// Faces with points on them, from training.csv of Kaggle's facial-keypoints contest.
///
///     vision::FacialKeypoints faces("training.csv.gz", {.points = vision::Points::kDrop,
///                                                       .transform = {ToTensor()}});
///     auto [image, points] = faces.get(0, random);    // f32 [1, 96, 96]; f32 [15, 2] in pixels
///
/// `path`: the file, plain or gzip, or its folder; or a record file that `argosy data pack` wrote
/// of them. A data::Dataset with the fast path; a value; thread-safe. Errors: DataError with path,
/// line and column: see datasets::read_keypoints(). Cost: 7,049 faces are read in some 0.2 s, from
/// gzip too (see benchmarks/README.md, suite input).
class FacialKeypoints final {
 public:
  explicit FacialKeypoints(const std::string& path, FacialKeypointsOptions options = {});

  [[nodiscard]] int64_t size() const;
  /// Image [C, H, W] and points f32 [K, 2], x then y in pixels of that image.
  /// Errors: UsageError when the index is outside [0, size()).
  [[nodiscard]] KeypointTensor get(int64_t index, data::Random& random) const;
  /// Images [n, C, H, W] in the context's memory and memory format, and points f32 [n, K, 2].
  /// Errors: as get(); DataError for an image of another shape than the batch's first.
  /// Cost: where the transform is ToTensor, Normalize or both, no image is made: rows become f32 in
  /// their places.
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;
  /// The face as it is stored: gray u8 [96, 96] and its points.
  [[nodiscard]] KeypointImage at(int64_t index) const;

  /// K names: "left_eye_center".
  [[nodiscard]] const std::vector<std::string>& names() const;
  /// Points that change places in a mirror, by number: for RandomHorizontalFlip's keypoint_pairs.
  [[nodiscard]] std::vector<std::pair<int64_t, int64_t>> pairs() const;

 private:
  struct State;
  void check_index(int64_t index) const;
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> batch_of_rows(
      std::span<const int64_t> indices, const data::BatchContext& context) const;
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> batch_of_samples(
      std::span<const int64_t> indices, const data::BatchContext& context) const;
  std::shared_ptr<const State> state_;
};

}  // namespace argosy::vision
