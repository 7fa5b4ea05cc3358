#include "argosy/datasets/pixel_source.h"

#include <span>
#include <utility>

#include "argosy/base/check.h"

namespace argosy::datasets {
namespace {

About with_splits(About about, const std::vector<PixelBlock>& blocks) {
  int64_t first = 0;
  for (const PixelBlock& block : blocks) {
    about.splits.push_back({.name = block.split, .first = first, .count = block.count});
    first += block.count;
  }
  return about;
}

int64_t bytes_of(const std::vector<int64_t>& shape) {
  return shape.at(0) * shape.at(1) * shape.at(2);
}

/// Those of `all` that are the `index`-th of `count` samples'.
template <typename Number>
std::span<const Number> part_of(const std::vector<Number>& all, int64_t index, int64_t count) {
  const size_t each = all.size() / static_cast<size_t>(count);
  return std::span(all).subspan(static_cast<size_t>(index) * each, each);
}

}  // namespace

PixelSource::PixelSource(About about, std::vector<PixelBlock> blocks)
    : Source(with_splits(std::move(about), blocks)) {
  for (PixelBlock& block : blocks) {
    size_ += block.count;
    Place& place = places_.emplace_back();
    place.count = block.count;
    place.block = std::move(block);
    if (place.block.read == nullptr) {
      (void)block_of(place);
    }
  }
}

const PixelBlock& PixelSource::block_of(const Place& place) const {
  if (place.here.load(std::memory_order_acquire)) {
    return place.block;
  }
  const std::lock_guard lock(place.mutex);
  if (!place.here.load(std::memory_order_relaxed)) {
    if (place.block.read != nullptr) {
      place.block = place.block.read();
    }
    const auto bytes = static_cast<int64_t>(place.block.pixels.size());
    ARGOSY_INVARIANT(
        place.block.count == place.count && bytes == place.count * bytes_of(about().shape),
        "datasets.pixels");
    place.here.store(true, std::memory_order_release);
  }
  return place.block;
}

Sample PixelSource::get(int64_t index, Scratch&) const {
  int64_t at = index;
  for (const Place& place : places_) {
    if (at >= 0 && at < place.count) {
      const PixelBlock& block = block_of(place);
      const std::vector<int64_t>& shape = about().shape;
      return {.picture = {.kind = StoredPicture::Kind::kPixels,
                          .bytes = part_of(block.pixels, at, block.count),
                          .size = {static_cast<int>(shape[0]), static_cast<int>(shape[1])},
                          .channels = static_cast<int>(shape[2])},
              .labels = part_of(block.labels, at, block.count),
              .points = part_of(block.points, at, block.count)};
    }
    at -= place.count;
  }
  throw UsageError("datasets.get", fmt::format("no sample {}: there are {}", index, size_));
}

}  // namespace argosy::datasets
