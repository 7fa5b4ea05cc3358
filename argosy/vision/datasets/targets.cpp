#include "argosy/vision/datasets/targets.h"

#include <algorithm>
#include <array>
#include <limits>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"

namespace argosy::vision {

using datasets::Task;

image::Size size_of(const at::Tensor& images) {
  return {static_cast<int>(images.size(-2)), static_cast<int>(images.size(-1))};
}

Targets::Targets(const datasets::About& about, const PictureOptions& options)
    : task_(about.task),
      path_(about.path),
      classes_(options.label == 0 ? about.classes : about.groups),
      label_(static_cast<size_t>(options.label)),
      points_(2 * about.point_names.size()),
      unit_(options.points_in) {
  ARGOSY_CHECK(options.label == 0 || (options.label == 1 && !about.groups.empty()),
               "vision.pictures",
               "option label {}: {} has no such label",
               options.label,
               about.path);
}

std::vector<int64_t> Targets::sizes() const {
  const auto points = static_cast<int64_t>(points_);
  switch (task_) {
    case Task::kClass:
      return {};
    case Task::kTags:
      return {std::ssize(classes_)};
    case Task::kPoints:
      return unit_ == PointUnit::kSides ? std::vector<int64_t>{points}
                                        : std::vector<int64_t>{points / 2, 2};
  }
  return {};
}

void Targets::check_label(int64_t label) const {
  if (label < 0 || label >= std::ssize(classes_)) {
    throw DataError("vision.pictures",
                    fmt::format("label {} is not one of {} classes", label, classes_.size()),
                    {.path = path_});
  }
}

void Targets::write(std::span<const int64_t> labels,
                    std::span<const float> points,
                    image::Size size,
                    const at::Tensor& targets,
                    int64_t i) const {
  if (task_ == Task::kClass) {
    const int64_t label = label_ < labels.size() ? labels[label_] : -1;
    if (!classes_.empty()) {
      check_label(label);
    }
    targets.data_ptr<int64_t>()[i] = label;
    return;
  }
  const size_t each = task_ == Task::kTags ? classes_.size() : points_;
  float* to = targets.data_ptr<float>() + static_cast<size_t>(i) * each;
  if (task_ == Task::kTags) {
    std::fill_n(to, each, 0.0F);
    for (const int64_t label : labels) {
      check_label(label);
      to[label] = 1;
    }
    return;
  }
  if (points.empty()) {  // a picture of which none are known
    std::fill_n(to, each, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  if (points.size() != points_) {
    throw DataError("vision.pictures",
                    fmt::format("expected {} coordinates, got {}", points_, points.size()),
                    {.path = path_});
  }
  std::ranges::copy(points, to);
  if (unit_ == PointUnit::kSides) {
    const std::array<float, 2> sides{static_cast<float>(size.width),
                                     static_cast<float>(size.height)};
    for (size_t j = 0; j < each; ++j) {
      to[j] /= sides[j % 2];
    }
  }
}

at::Tensor Targets::of(std::span<const int64_t> labels,
                       std::span<const float> points,
                       const at::Tensor& image) const {
  at::Tensor target = at::empty(sizes(), type());
  write(labels, points, size_of(image), target, 0);
  return target;
}

at::Tensor Targets::of(std::span<const int64_t> labels, const KeypointTensor& made) const {
  if (!are_points()) {
    return of(labels, {}, made.image);
  }
  const at::Tensor points = made.points.contiguous();
  return of(labels, {points.data_ptr<float>(), static_cast<size_t>(points.numel())}, made.image);
}

at::Tensor Targets::points_of(const datasets::Sample& sample) const {
  if (!are_points()) {
    return {};
  }
  const size_t count = sample.points.empty() ? points_ : sample.points.size();
  at::Tensor points = at::empty({static_cast<int64_t>(count) / 2, 2}, at::kFloat);
  std::fill_n(points.data_ptr<float>(), count, std::numeric_limits<float>::quiet_NaN());
  std::ranges::copy(sample.points, points.data_ptr<float>());
  return points;
}

}  // namespace argosy::vision
