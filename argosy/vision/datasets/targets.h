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

/// Returns the size of images [..., H, W].
[[nodiscard]] image::Size size_of(const at::Tensor& images);

/// Makes the targets for the pictures of a source; see PictureDataset. It is a value.
class Targets final {
 public:
  /// Errors: UsageError for a label that the source does not have.
  Targets(const datasets::About& about, const PictureOptions& options);

  [[nodiscard]] bool are_points() const { return task_ == datasets::Task::kPoints; }
  [[nodiscard]] const std::vector<std::string>& classes() const { return classes_; }
  /// Returns the sizes of one target.
  [[nodiscard]] std::vector<int64_t> sizes() const;
  [[nodiscard]] at::ScalarType type() const {
    return task_ == datasets::Task::kClass ? at::kLong : at::kFloat;
  }

  /// Writes target `i` of a batch. `size` is that of the picture on which the points lie.
  /// Errors: DataError for a label outside the classes, and for a wrong number of points.
  void write(std::span<const int64_t> labels,
             std::span<const float> points,
             image::Size size,
             const at::Tensor& targets,
             int64_t i) const;
  [[nodiscard]] at::Tensor of(std::span<const int64_t> labels,
                              std::span<const float> points,
                              const at::Tensor& image) const;
  /// Returns the target of what a transform made of picture and points.
  [[nodiscard]] at::Tensor of(std::span<const int64_t> labels, const KeypointTensor& made) const;
  /// Returns the points for the transform: f32 [K, 2]. Undefined if targets are not points.
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
