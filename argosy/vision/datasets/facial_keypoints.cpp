#include "argosy/vision/datasets/facial_keypoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/datasets/sets.h"
#include "argosy/vision/datasets/fused_pictures.h"
#include "argosy/vision/transforms/fused.h"

namespace argosy::vision {
namespace {

/// "right_eye_center" of "left_eye_center", and the other way round; empty of "nose_tip".
std::string other_side(const std::string& name) {
  for (const auto& [side, other] : {std::pair("left", "right"), std::pair("right", "left")}) {
    if (const size_t at = name.find(side); at != std::string::npos) {
      return std::string(name).replace(at, std::strlen(side), other);
    }
  }
  return {};
}

/// Does the chain change values only, so that the points stay where they are?
bool leaves_points_alone(const Compose& chain, image::Size size) {
  const std::optional<FusedPlan> plan = recognise(chain);
  if (!plan.has_value() || chain.is_random()) {
    return false;
  }
  data::Random unused(0, 0, 0);
  const image::Box whole{0, 0, size.height, size.width};
  return plan->draw(size, unused) == FusedDraw{.source = whole, .resized = size, .window = whole};
}

/// The shape of one in front of which stands the number of all.
std::vector<int64_t> batch_sizes(size_t count, at::IntArrayRef one) {
  std::vector<int64_t> sizes = one.vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(count));
  return sizes;
}

}  // namespace

struct FacialKeypoints::State {
  State(std::shared_ptr<const datasets::Source> from, Compose chain)
      : source(std::move(from)),
        count(datasets::find_split(*source, "train").count),
        transform(std::move(chain)) {
    const std::vector<int64_t>& shape = source->about().shape;
    if (leaves_points_alone(transform,
                            {static_cast<int>(shape.at(0)), static_cast<int>(shape.at(1))})) {
      whole_rows = FusedPictures::make(transform, image::Order::kGray);
    }
  }

  std::shared_ptr<const datasets::Source> source;
  int64_t count;  // of the source's samples the first
  Compose transform;
  std::unique_ptr<const FusedPictures> whole_rows{};  // or none
};

FacialKeypoints::FacialKeypoints(const std::string& path, FacialKeypointsOptions options)
    : state_(std::make_shared<const State>(
          datasets::open(datasets::keypoints(), {.path = path, .points = options.points}),
          std::move(options.transform))) {}

int64_t FacialKeypoints::size() const {
  return state_->count;
}

void FacialKeypoints::check_index(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               "vision.FacialKeypoints",
               "index {} is outside the data set of {} samples",
               index,
               size());
}

KeypointImage FacialKeypoints::at(int64_t index) const {
  check_index(index);
  datasets::Scratch scratch;
  const datasets::Sample face = state_->source->get(index, scratch);
  KeypointImage copy{.image = state_->source->decoded(face),
                     .points = at::empty({std::ssize(face.points) / 2, 2}, at::kFloat)};
  std::ranges::copy(face.points, copy.points.data_ptr<float>());
  return copy;
}

KeypointTensor FacialKeypoints::get(int64_t index, data::Random& random) const {
  return state_->transform(at(index), random);
}

std::tuple<at::Tensor, at::Tensor> FacialKeypoints::get_batch(
    std::span<const int64_t> indices, const data::BatchContext& context) const {
  return state_->whole_rows != nullptr ? batch_of_rows(indices, context)
                                       : batch_of_samples(indices, context);
}

std::tuple<at::Tensor, at::Tensor> FacialKeypoints::batch_of_rows(
    std::span<const int64_t> indices, const data::BatchContext& context) const {
  const auto points = static_cast<int64_t>(names().size()) * 2;
  at::Tensor images =
      context.empty_batch(batch_sizes(indices.size(), state_->whole_rows->sizes()), at::kFloat);
  at::Tensor all_points =
      context.empty({static_cast<int64_t>(indices.size()), points / 2, 2}, at::kFloat);
  auto* to = all_points.data_ptr<float>();
  datasets::Scratch scratch;
  for (size_t i = 0; i < indices.size() && !context.stopped(); ++i) {
    check_index(indices[i]);
    context.begin_sample(indices[i]);
    data::Random unused = context.random(indices[i]);
    const datasets::Sample face = state_->source->get(indices[i], scratch);
    state_->whole_rows->write(
        *state_->source, face, unused, target_of(images.select(0, static_cast<int64_t>(i))));
    to = std::ranges::copy(face.points, to).out;
  }
  return {std::move(images), std::move(all_points)};
}

std::tuple<at::Tensor, at::Tensor> FacialKeypoints::batch_of_samples(
    std::span<const int64_t> indices, const data::BatchContext& context) const {
  at::Tensor images;
  at::Tensor all_points;
  for (size_t i = 0; i < indices.size() && !context.stopped(); ++i) {
    context.begin_sample(indices[i]);
    data::Random random = context.random(indices[i]);
    const KeypointTensor face = get(indices[i], random);
    if (!images.defined()) {
      images = context.empty_batch(batch_sizes(indices.size(), face.image.sizes()),
                                   face.image.scalar_type());
      all_points = context.empty(batch_sizes(indices.size(), face.points.sizes()), at::kFloat);
    }
    if (face.image.sizes() != images.sizes().slice(1) ||
        face.image.scalar_type() != images.scalar_type()) {
      throw DataError("vision.FacialKeypoints",
                      fmt::format("expected an image of shape [{}] as the batch's first, got [{}]. "
                                  "End the transform in a fixed size",
                                  fmt::join(images.sizes().slice(1), ", "),
                                  fmt::join(face.image.sizes(), ", ")),
                      {.path = "", .index = indices[i]});
    }
    images.select(0, static_cast<int64_t>(i)).copy_(face.image);
    all_points.select(0, static_cast<int64_t>(i)).copy_(face.points);
  }
  return {std::move(images), std::move(all_points)};
}

const std::vector<std::string>& FacialKeypoints::names() const {
  return state_->source->about().point_names;
}

std::vector<std::pair<int64_t, int64_t>> FacialKeypoints::pairs() const {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (size_t i = 0; i < names().size(); ++i) {
    const auto partner = std::ranges::find(names(), other_side(names()[i]));
    const auto j = static_cast<size_t>(partner - names().begin());
    if (partner != names().end() && i < j) {
      found.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(j));
    }
  }
  return found;
}

}  // namespace argosy::vision
