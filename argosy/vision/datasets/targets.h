#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/vision/datasets/picture_dataset.h"
#include "argosy/vision/transforms/picture.h"

// Internal to the data sets.
namespace argosy::vision {

/// Of images [..., H, W].
[[nodiscard]] image::Size size_of(const at::Tensor& images);

/// What a model is to say of the pictures of a source: see PictureDataset. A value.
class Targets final {
 public:
  /// Errors: UsageError for a label that the source does not have.
  Targets(const datasets::About& about, const PictureOptions& options);

  [[nodiscard]] bool are_points() const { return task_ == datasets::Task::kPoints; }
  [[nodiscard]] const std::vector<std::string>& classes() const { return classes_; }
  /// Of one target.
  [[nodiscard]] std::vector<int64_t> sizes() const;
  [[nodiscard]] at::ScalarType type() const {
    return task_ == datasets::Task::kClass ? at::kLong : at::kFloat;
  }

  /// Writes target `i` of a batch; `size`: of the picture that the points lie on.
  /// Errors: DataError for a label that is none of the classes, for another number of points.
  void write(std::span<const int64_t> labels,
             std::span<const float> points,
             image::Size size,
             const at::Tensor& targets,
             int64_t i) const;
  [[nodiscard]] at::Tensor of(std::span<const int64_t> labels,
                              std::span<const float> points,
                              const at::Tensor& image) const;
  /// Of what a transform made of picture and points.
  [[nodiscard]] at::Tensor of(std::span<const int64_t> labels, const KeypointTensor& made) const;
  /// For the transform: f32 [K, 2]; undefined where targets are no points.
  [[nodiscard]] at::Tensor points_of(const datasets::Sample& sample) const;

 private:
  void check_label(int64_t label) const;

  datasets::Task task_;
  std::string path_;
  std::vector<std::string> classes_;
  size_t label_;   ///< which of a sample's labels
  size_t points_;  ///< coordinates of a sample
  PointUnit unit_;
};

}  // namespace argosy::vision
