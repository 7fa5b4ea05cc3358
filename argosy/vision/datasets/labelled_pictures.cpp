#include "argosy/vision/datasets/labelled_pictures.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/samples/sample_source.h"

namespace argosy::vision {

struct LabelledPictures::State {
  const char* where;
  PictureBatches batches;
  std::vector<int64_t> labels;
  std::vector<std::string> classes;
};

LabelledPictures::LabelledPictures(Parts parts) {
  const PicturesOf& of = parts.pictures;
  std::vector<int64_t> labels;
  labels.reserve(static_cast<size_t>(of.count));
  for (int64_t i = 0; i < of.count; ++i) {
    labels.push_back(parts.label ? parts.label(of.first + i) : of.source->label(of.first + i));
  }
  state_ = std::make_shared<const State>(
      State{.where = parts.where,
            .batches = PictureBatches(
                std::move(parts.pictures), std::move(parts.options.transform), image::Order::kRgb),
            .labels = std::move(labels),
            .classes = std::move(parts.classes)});
}

int64_t LabelledPictures::size() const {
  return static_cast<int64_t>(state_->labels.size());
}

void LabelledPictures::check_index(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               state_->where,
               "index {} is outside the data set of {} samples",
               index,
               size());
}

LabelledPicture LabelledPictures::get(int64_t index, data::Random& random) const {
  check_index(index);
  return {.image = state_->batches.get(index, random),
          .label = state_->labels[static_cast<size_t>(index)]};
}

LabelledPicture LabelledPictures::get(int64_t index) const {
  ARGOSY_CHECK(!state_->batches.transform().is_random(),
               state_->where,
               "the transform draws random numbers and needs a stream: get(index, random)");
  data::Random unused(0, 0, index);
  return get(index, unused);
}

std::tuple<at::Tensor, at::Tensor> LabelledPictures::get_batch(
    std::span<const int64_t> indices, const data::BatchContext& context) const {
  at::Tensor labels = context.empty({static_cast<int64_t>(indices.size())}, at::kLong);
  auto* label = labels.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    check_index(index);
    *label++ = state_->labels[static_cast<size_t>(index)];
  }
  return {state_->batches.get_batch(indices, context), std::move(labels)};
}

image::Image LabelledPictures::picture(int64_t index) const {
  check_index(index);
  return state_->batches.picture(index);
}

const std::vector<int64_t>& LabelledPictures::labels() const {
  return state_->labels;
}
const std::vector<std::string>& LabelledPictures::classes() const {
  return state_->classes;
}

}  // namespace argosy::vision
