#include "argosy/vision/datasets/labelled_pictures.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/datasets/source.h"
#include "argosy/vision/datasets/cached_source.h"

namespace argosy::vision {

struct LabelledPictures::State {
  explicit State(Parts parts)
      : where(parts.where),
        pictures(parts.pictures),
        cache(cached(where,
                     pictures.source,
                     parts.options.cache,
                     checked_order(where, parts.options.order))),
        batches({cache != nullptr ? cache : pictures.source, pictures.first, pictures.count},
                std::move(parts.options.transform),
                parts.options.order),
        classes(std::move(parts.classes)),
        label_of_source(std::move(parts.label)),
        read_labels(parts.read_labels) {
    if (read_labels == ReadLabels::kAtOnce) {
      (void)all_labels();
    }
  }

  const char* where;
  PicturesOf pictures;
  std::shared_ptr<const CachedSource> cache;  // or none
  PictureBatches batches;
  std::vector<std::string> classes;
  std::function<int64_t(int64_t index)> label_of_source;
  ReadLabels read_labels;
  mutable std::once_flag labels_are_read{};
  mutable std::vector<int64_t> labels{};

  [[nodiscard]] int64_t read_label(int64_t index) const {
    try {
      const int64_t of_source = pictures.first + index;
      const int64_t label =
          label_of_source ? label_of_source(of_source) : pictures.source->label(of_source);
      if (label < 0 || label >= std::ssize(classes)) {
        throw DataError(where,
                        fmt::format("label {} is none of {} classes", label, classes.size()),
                        {.path = pictures.source->about().path});
      }
      return label;
    } catch (const DataError& error) {
      throw error.with_index(index);
    }
  }

  const std::vector<int64_t>& all_labels() const {
    std::call_once(labels_are_read, [&] {
      std::vector<int64_t> all;
      all.reserve(static_cast<size_t>(pictures.count));
      for (int64_t i = 0; i < pictures.count; ++i) {
        all.push_back(read_label(i));
      }
      labels = std::move(all);
    });
    return labels;
  }

  [[nodiscard]] int64_t label(int64_t index) const {
    return read_labels == ReadLabels::kWithSamples ? read_label(index)
                                                   : labels[static_cast<size_t>(index)];
  }
};

LabelledPictures::LabelledPictures(Parts parts)
    : state_(std::make_shared<const State>(std::move(parts))) {}

int64_t LabelledPictures::size() const {
  return state_->pictures.count;
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
  return {.image = state_->batches.get(index, random), .label = state_->label(index)};
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
    *label++ = state_->label(index);
  }
  return {state_->batches.get_batch(indices, context), std::move(labels)};
}

image::Image LabelledPictures::picture(int64_t index) const {
  check_index(index);
  return state_->batches.picture(index);
}

const std::vector<int64_t>& LabelledPictures::labels() const {
  return state_->all_labels();
}
data::CacheStats LabelledPictures::cache_stats() const {
  return state_->cache != nullptr ? state_->cache->stats() : data::CacheStats();
}
const std::vector<std::string>& LabelledPictures::classes() const {
  return state_->classes;
}

}  // namespace argosy::vision
