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

/// Those numbers of `all` that are the `index`-th of `count` samples'.
template <typename Number>
std::vector<Number> part_of(const std::vector<Number>& all, int64_t index, int64_t count) {
  const auto each = static_cast<int64_t>(all.size()) / count;
  return {all.begin() + index * each, all.begin() + (index + 1) * each};
}

}  // namespace

PixelSource::PixelSource(About about, Shape shape, std::vector<PixelBlock> blocks)
    : Source(with_splits(std::move(about), blocks)), shape_(shape), blocks_(std::move(blocks)) {
  for (const PixelBlock& block : blocks_) {
    ARGOSY_INVARIANT(static_cast<int64_t>(block.pixels.size()) == block.count * shape_.bytes(),
                     "datasets.pixels");
    size_ += block.count;
  }
}

formats::PackedSample PixelSource::get(int64_t index, std::vector<uint8_t>&) const {
  int64_t at = index;
  for (const PixelBlock& block : blocks_) {
    if (at < block.count) {
      const auto bytes = static_cast<size_t>(shape_.bytes());
      return {.kind = formats::Picture::kPixels,
              .height = shape_.height,
              .width = shape_.width,
              .channels = shape_.channels,
              .labels = part_of(block.labels, at, block.count),
              .points = part_of(block.points, at, block.count),
              .picture = std::as_bytes(
                  std::span(block.pixels).subspan(static_cast<size_t>(at) * bytes, bytes))};
    }
    at -= block.count;
  }
  throw UsageError("datasets.get", fmt::format("no sample {}: there are {}", index, size_));
}

}  // namespace argosy::datasets
