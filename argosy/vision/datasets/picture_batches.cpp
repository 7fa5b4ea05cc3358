#include "argosy/vision/datasets/picture_batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/datasets/source.h"
#include "argosy/vision/datasets/fused_pictures.h"

namespace argosy::vision {
namespace {

std::string describe(const at::Tensor& tensor) {
  return fmt::format(
      "[{}] of {}", fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()));
}

/// use(sample `index` of these). A DataError knows the index then.
template <typename Use>
decltype(auto) with_sample(const PicturesOf& pictures, int64_t index, const Use& use) {
  thread_local datasets::Scratch scratch;
  try {
    return use(pictures.source->get(pictures.first + index, scratch));
  } catch (const DataError& error) {
    throw error.with_index(index);
  }
}

}  // namespace

image::Order checked_order(const char* where, image::Order order) {
  ARGOSY_CHECK(order == image::Order::kRgb || order == image::Order::kGray,
               where,
               "order must be kRgb or kGray");
  return order;
}

PictureBatches::PictureBatches(PicturesOf pictures, Compose transform, image::Order order)
    : pictures_(std::move(pictures)),
      transform_(std::move(transform)),
      order_(order),
      fused_(FusedPictures::make(transform_, order)) {}

PictureBatches::~PictureBatches() = default;
PictureBatches::PictureBatches(PictureBatches&&) noexcept = default;
PictureBatches& PictureBatches::operator=(PictureBatches&&) noexcept = default;

bool PictureBatches::fused() const {
  return fused_ != nullptr;
}

image::Image PictureBatches::decoded(const datasets::Sample& sample) const {
  return pictures_.source->decoded(sample,
                                   {.order = order_, .damaged = image::Damaged::kRaiseTruncated});
}

image::Image PictureBatches::picture(int64_t index) const {
  return with_sample(
      pictures_, index, [&](const datasets::Sample& sample) { return decoded(sample); });
}

at::Tensor PictureBatches::get(int64_t index, data::Random& random) const {
  return with_sample(pictures_, index, [&](const datasets::Sample& sample) {
    if (fused_ != nullptr) {
      at::Tensor chw = at::empty(fused_->sizes(), at::kFloat);
      fused_->write(*pictures_.source, sample, random, target_of(chw));
      return chw;
    }
    return transform_(decoded(sample), random);
  });
}

at::Tensor PictureBatches::get_batch(std::span<const int64_t> indices,
                                     const data::BatchContext& context) const {
  return fused_ != nullptr ? fused_batch(indices, context) : plain_batch(indices, context);
}

at::Tensor PictureBatches::fused_batch(std::span<const int64_t> indices,
                                       const data::BatchContext& context) const {
  std::vector<int64_t> sizes = fused_->sizes();
  sizes.insert(sizes.begin(), static_cast<int64_t>(indices.size()));
  at::Tensor batch = context.empty_batch(sizes, at::kFloat);
  for (size_t i = 0; i < indices.size() && !context.stopped(); ++i) {
    context.begin_sample(indices[i]);
    with_sample(pictures_, indices[i], [&](const datasets::Sample& sample) {
      data::Random random = context.random(indices[i]);
      fused_->write(
          *pictures_.source, sample, random, target_of(batch.select(0, static_cast<int64_t>(i))));
    });
  }
  return batch;
}

at::Tensor PictureBatches::plain_batch(std::span<const int64_t> indices,
                                       const data::BatchContext& context) const {
  at::Tensor batch;
  at::Tensor first;
  for (size_t i = 0; i < indices.size() && !context.stopped(); ++i) {
    context.begin_sample(indices[i]);
    data::Random random = context.random(indices[i]);
    const at::Tensor one = get(indices[i], random);
    if (!first.defined()) {
      first = one;
      std::vector<int64_t> sizes = one.sizes().vec();
      sizes.insert(sizes.begin(), static_cast<int64_t>(indices.size()));
      batch = context.empty_batch(sizes, one.scalar_type());
    }
    if (one.sizes() != first.sizes() || one.scalar_type() != first.scalar_type()) {
      throw DataError("vision.pictures",
                      fmt::format("expected the shape {} of the batch's first sample, got {}. End "
                                  "the transform in a fixed size: Resize({{224, 224}}), "
                                  "CenterCrop(224), RandomResizedCrop(224)",
                                  describe(first),
                                  describe(one)),
                      {.path = "", .index = indices[i]});
    }
    batch.select(0, static_cast<int64_t>(i)).copy_(one);
  }
  return batch;
}

}  // namespace argosy::vision
