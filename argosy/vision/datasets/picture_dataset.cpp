#include "argosy/vision/datasets/picture_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/vision/datasets/cached_source.h"
#include "argosy/vision/datasets/one_pass.h"
#include "argosy/vision/datasets/plain_pictures.h"
#include "argosy/vision/datasets/targets.h"

namespace argosy::vision {
namespace {

constexpr const char* kWhere = "vision.pictures";

image::Order order_of(const PictureOptions& options, const datasets::About& about) {
  const bool gray = !about.shape.empty() && about.shape[2] == 1;
  const image::Order order =
      options.order.value_or(gray ? image::Order::kGray : image::Order::kRgb);
  ARGOSY_CHECK(order == image::Order::kRgb || order == image::Order::kGray,
               kWhere,
               "order must be kRgb or kGray");
  return order;
}

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{} of {}", text::shape(tensor), c10::toString(tensor.scalar_type()));
}

/// The sizes of `count` of one.
std::vector<int64_t> batch_sizes(size_t count, at::IntArrayRef one) {
  std::vector<int64_t> sizes = one.vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(count));
  return sizes;
}

/// That of picture `i` of an f32 batch [N, C, H, W], row-major or channels_last.
PictureTarget target_of(const at::Tensor& nchw, int64_t i) {
  return {.first = nchw.data_ptr<float>() + i * nchw.stride(0),
          .channel_stride = nchw.size(1) == 1 ? 1 : nchw.stride(1),
          .row_stride = nchw.stride(2)};
}

/// What a user's transform throws is the sample's fault, as far as a loader can tell.
template <typename Use>
decltype(auto) with_place(int64_t key, const Use& use) {
  try {
    return use();
  } catch (const DataError& error) {
    throw error.with_index(key);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DataError(kWhere, fmt::format("the transform threw: {}", error.what()), {.index = key});
  }
}

/// A source promises its shape once, and each picture is read by that promise.
void check_shape(const datasets::StoredPicture& picture, const datasets::About& about) {
  const std::vector<int64_t>& shape = about.shape;
  const bool as_promised =
      shape.empty() ||
      (picture.kind == datasets::StoredPicture::Kind::kPixels && picture.size.height == shape[0] &&
       picture.size.width == shape[1] && picture.channels == shape[2] &&
       std::ssize(picture.bytes) == shape[0] * shape[1] * shape[2]);
  if (!as_promised) {
    throw DataError(kWhere,
                    fmt::format("expected {} x {} x {} pixels, as all of the set, got {} bytes of "
                                "{} x {} x {}",
                                shape[0],
                                shape[1],
                                shape[2],
                                picture.bytes.size(),
                                picture.size.height,
                                picture.size.width,
                                picture.channels),
                    {about.path});
  }
}

datasets::OpenOptions at_path(datasets::OpenOptions options, const std::string& path) {
  options.path = path;
  return options;
}

}  // namespace

struct PictureDataset::State {
  State(std::shared_ptr<const datasets::Source> from, std::string_view name, PictureOptions options)
      : order(order_of(options, from->about())),
        cache(cached(kWhere, from, options.cache, order)),
        source(cache != nullptr ? cache : std::move(from)),
        split(datasets::find_split(*source, name)),
        plain(options, order, source->about()),
        targets(source->about(), options),
        transform(std::move(options.transform)) {
    const std::vector<int64_t>& shape = source->about().shape;
    if (transform.runner() != nullptr) {
      one_pass = transform.runner()->one_pass(transform, order);
    } else if (!shape.empty()) {
      one_pass = plain.of_one_size({static_cast<int>(shape[0]), static_cast<int>(shape[1])});
    }
    if (one_pass != nullptr && targets.are_points() &&
        (shape.empty() ||
         !one_pass->keeps_places({static_cast<int>(shape[0]), static_cast<int>(shape[1])}))) {
      one_pass = nullptr;
    }
  }

  [[nodiscard]] image::Image decoded(const datasets::Sample& sample) const {
    return source->decoded(sample, {.order = order, .damaged = image::Damaged::kRaiseTruncated});
  }

  /// use(sample), by its place in the whole set.
  template <typename Use>
  decltype(auto) with_sample(int64_t key, const Use& use) const {
    thread_local datasets::Scratch scratch;
    return with_place(key, [&]() -> decltype(auto) {
      const datasets::Sample sample = source->get(key, scratch);
      check_shape(sample.picture, source->about());
      return use(sample);
    });
  }

  [[nodiscard]] Example example(const datasets::Sample& sample, data::Random& random) const {
    if (one_pass != nullptr) {
      at::Tensor image = at::empty(batch_sizes(1, one_pass->sizes()), at::kFloat);
      one_pass->write(*source, sample, random, target_of(image, 0));
      image = image.select(0, 0);
      return {.image = image, .target = targets.of(sample.labels, sample.points, image)};
    }
    image::Image picture = decoded(sample);
    if (transform.runner() == nullptr) {
      const at::Tensor image = plain.tensor_of(picture);
      return {.image = image, .target = targets.of(sample.labels, sample.points, image)};
    }
    // A step of the user's may read another sample, which takes the memory of this one's labels.
    const std::vector<int64_t> labels(sample.labels.begin(), sample.labels.end());
    const KeypointTensor made = transform.runner()->run(
        transform, {.image = std::move(picture), .points = targets.points_of(sample)}, random);
    return {.image = made.image, .target = targets.of(labels, made)};
  }

  image::Order order;
  std::shared_ptr<const CachedSource> cache;  // or none
  std::shared_ptr<const datasets::Source> source;
  datasets::SplitRange split;
  PlainPictures plain;
  Targets targets;
  Compose transform;
  std::unique_ptr<const OnePass> one_pass{};  // or none
  mutable std::once_flag labels_are_read{};
  mutable std::vector<int64_t> labels{};
};

PictureDataset::PictureDataset(std::shared_ptr<const datasets::Source> source,
                               std::string_view split,
                               PictureOptions options)
    : state_(std::make_shared<const State>(std::move(source), split, std::move(options))) {}

PictureDataset::PictureDataset(const datasets::Row& set,
                               const std::string& path,
                               std::string_view split,
                               PictureOptions options)
    : PictureDataset(datasets::open(set, at_path(options.open, path)), split, std::move(options)) {}

PictureDataset::PictureDataset(const datasets::Row& set,
                               const std::string& path,
                               Split split,
                               PictureOptions options)
    : PictureDataset(set, path, to_string(split), std::move(options)) {}

int64_t PictureDataset::size() const {
  return state_->split.count;
}
int64_t PictureDataset::sample_key(int64_t index) const {
  return state_->split.first + index;
}
int64_t PictureDataset::key_space() const {
  return state_->source->size();
}

void PictureDataset::check_index(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               kWhere,
               "index {} is outside the data set of {} samples",
               index,
               size());
}

Example PictureDataset::get(int64_t index, data::Random& random) const {
  check_index(index);
  return state_->with_sample(sample_key(index), [&](const datasets::Sample& sample) {
    return state_->example(sample, random);
  });
}

Example PictureDataset::get(int64_t index) const {
  ARGOSY_CHECK(!state_->transform.is_random(),
               kWhere,
               "the transform draws random numbers and needs a stream: get(index, random)");
  data::Random unused(0, 0, index);
  return get(index, unused);
}

std::tuple<at::Tensor, at::Tensor> PictureDataset::get_batch(
    std::span<const int64_t> indices, const data::BatchContext& context) const {
  const State& set = *state_;
  at::Tensor targets =
      context.empty(batch_sizes(indices.size(), set.targets.sizes()), set.targets.type());
  at::Tensor images;
  if (set.one_pass != nullptr) {
    images = context.empty_batch(batch_sizes(indices.size(), set.one_pass->sizes()), at::kFloat);
  }
  for (int64_t i = 0; i < std::ssize(indices) && !context.stopped(); ++i) {
    check_index(indices[i]);
    const int64_t key = sample_key(indices[i]);
    context.begin_sample(key);
    data::Random random = context.random(key);
    set.with_sample(key, [&](const datasets::Sample& sample) {
      if (set.one_pass != nullptr) {
        set.one_pass->write(*set.source, sample, random, target_of(images, i));
        set.targets.write(sample.labels, sample.points, size_of(images), targets, i);
        return;
      }
      const Example one = set.example(sample, random);
      if (!images.defined()) {
        images = context.empty_batch(batch_sizes(indices.size(), one.image.sizes()),
                                     one.image.scalar_type());
      }
      if (one.image.sizes() != images.sizes().slice(1) ||
          one.image.scalar_type() != images.scalar_type()) {
        throw DataError(
            kWhere,
            fmt::format("expected the shape {} of the batch's first sample, got {}. End "
                        "the transform in a fixed size: Resize({{224, 224}}), "
                        "CenterCrop(224), RandomResizedCrop(224)",
                        describe(images[0]),
                        describe(one.image)),
            {});
      }
      images.select(0, i).copy_(one.image);
      targets.select(0, i).copy_(one.target);
    });
  }
  return {std::move(images), std::move(targets)};
}

StoredExample PictureDataset::stored(int64_t index) const {
  check_index(index);
  return state_->with_sample(sample_key(index), [&](const datasets::Sample& sample) {
    return StoredExample{.picture = state_->decoded(sample),
                         .labels = {sample.labels.begin(), sample.labels.end()},
                         .points = {sample.points.begin(), sample.points.end()},
                         .name = std::string(sample.name)};
  });
}

std::string PictureDataset::name(int64_t index) const {
  check_index(index);
  return state_->with_sample(
      sample_key(index), [](const datasets::Sample& sample) { return std::string(sample.name); });
}

const std::vector<int64_t>& PictureDataset::labels() const {
  ARGOSY_CHECK(state_->targets.type() == at::kLong,
               kWhere,
               "the samples of {} have not one class each. Ask for targets()",
               state_->source->about().path);
  std::call_once(state_->labels_are_read, [&] {
    const at::Tensor all = targets();
    state_->labels.assign(all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + all.numel());
  });
  return state_->labels;
}

at::Tensor PictureDataset::targets() const {
  const State& set = *state_;
  at::Tensor all =
      at::empty(batch_sizes(static_cast<size_t>(size()), set.targets.sizes()), set.targets.type());
  datasets::Scratch scratch;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t key = sample_key(i);
    if (set.targets.are_points()) {
      const StoredExample each = stored(i);
      set.targets.write({}, each.points, each.picture.size(), all, i);
    } else {
      with_place(key, [&] { set.targets.write(set.source->labels(key, scratch), {}, {}, all, i); });
    }
  }
  return all;
}

at::Tensor PictureDataset::pixels() const {
  const std::vector<int64_t>& shape = state_->source->about().shape;
  ARGOSY_CHECK(!shape.empty(),
               kWhere,
               "the pictures of {} are not pixels of one size",
               source().about().path);
  const int64_t channels = image::channels_of(state_->order);
  at::Tensor all = at::empty({size(), shape[0], shape[1], channels}, at::kByte);
  for (int64_t i = 0; i < size(); ++i) {
    const image::Image picture = this->picture(i);
    std::copy_n(picture.row<uint8_t>(0),
                picture.total_bytes(),
                all.data_ptr<uint8_t>() + i * all.stride(0));
  }
  return all.permute({0, 3, 1, 2});
}

const std::vector<std::string>& PictureDataset::classes() const {
  return state_->targets.classes();
}
const std::vector<std::string>& PictureDataset::point_names() const {
  return state_->source->about().point_names;
}
const datasets::Source& PictureDataset::source() const {
  return *state_->source;
}
data::CacheStats PictureDataset::cache_stats() const {
  return state_->cache != nullptr ? state_->cache->stats() : data::CacheStats();
}

}  // namespace argosy::vision
