#include "argosy/vision/datasets/cached_source.h"

#include <span>
#include <string>
#include <utility>

#include "argosy/base/check.h"

namespace argosy::vision {
/// A sample whose spans point into itself.
struct CachedSource::Kept {
  explicit Kept(const datasets::Sample& from)
      : name(from.name),
        picture(from.picture.bytes.begin(), from.picture.bytes.end()),
        labels(from.labels.begin(), from.labels.end()),
        points(from.points.begin(), from.points.end()),
        sample(from) {
    sample.picture.bytes = picture;
    sample.labels = labels;
    sample.points = points;
    sample.name = name;
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  Kept(Kept&&) = delete;
  Kept& operator=(Kept&&) = delete;
  ~Kept() = default;

  [[nodiscard]] int64_t bytes() const {
    return static_cast<int64_t>(sizeof(Kept) + name.size() + picture.size() +
                                labels.size() * sizeof(int64_t) + points.size() * sizeof(float));
  }

  std::string name;
  std::vector<uint8_t> picture;
  std::vector<int64_t> labels;
  std::vector<float> points;
  datasets::Sample sample;
};

CachedSource::CachedSource(std::shared_ptr<const datasets::Source> source,
                           const PictureCache& options,
                           image::Order order)
    : Source(source->about()),
      source_(std::move(source)),
      options_(options),
      order_(order),
      kept_(static_cast<size_t>(source_->size())) {}

CachedSource::~CachedSource() {
  for (const std::atomic<const Kept*>& kept : kept_) {
    delete kept.load();
  }
}

datasets::Sample CachedSource::get(int64_t index, datasets::Scratch& scratch) const {
  if (const Kept* kept = kept_.at(static_cast<size_t>(index)).load(std::memory_order_acquire)) {
    ++hits_;
    return kept->sample;
  }
  ++misses_;
  const datasets::Sample sample = in_form(source_->get(index, scratch), scratch);
  const Kept* kept = full_ ? nullptr : keep(index, sample);
  return kept == nullptr ? sample : kept->sample;
}

/// The sample as it is kept; its picture is in `scratch` where it was decoded.
datasets::Sample CachedSource::in_form(datasets::Sample sample, datasets::Scratch& scratch) const {
  if (options_.keep == Keep::kEncoded ||
      sample.picture.kind == datasets::StoredPicture::Kind::kPixels) {
    return sample;
  }
  const image::Image picture =
      source_->decoded(sample, {.order = order_, .damaged = image::Damaged::kRaiseTruncated});
  const auto* pixels = picture.row<uint8_t>(0);
  // The name may lie behind the encoded bytes in `scratch`: it moves behind the pixels.
  std::vector<uint8_t> bytes(pixels, pixels + picture.total_bytes());
  bytes.insert(bytes.end(), sample.name.begin(), sample.name.end());
  scratch.bytes = std::move(bytes);
  const std::span<const uint8_t> all(scratch.bytes);
  sample.picture = {.kind = datasets::StoredPicture::Kind::kPixels,
                    .bytes = all.first(picture.total_bytes()),
                    .size = picture.size(),
                    .channels = picture.channels()};
  const auto name = all.subspan(picture.total_bytes());
  sample.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  return sample;
}

/// nullptr: there is no room.
const CachedSource::Kept* CachedSource::keep(int64_t index, const datasets::Sample& sample) const {
  auto mine = std::make_unique<const Kept>(sample);
  const int64_t bytes = mine->bytes();
  if (bytes_.fetch_add(bytes) + bytes > options_.max_bytes) {
    bytes_ -= bytes;
    full_ = true;  // nobody tries again: copies for nothing
    return nullptr;
  }
  const Kept* there = nullptr;
  if (!kept_[static_cast<size_t>(index)].compare_exchange_strong(there, mine.get())) {
    bytes_ -= bytes;  // another thread was as fast
    return there;
  }
  ++count_;
  return mine.release();
}

data::CacheStats CachedSource::stats() const {
  return {.hits = hits_, .misses = misses_, .kept = count_, .bytes = bytes_, .full = full_};
}

std::shared_ptr<const CachedSource> cached(const char* where,
                                           std::shared_ptr<const datasets::Source> source,
                                           const PictureCache& options,
                                           image::Order order) {
  if (options.keep == Keep::kNothing) {
    return nullptr;
  }
  ARGOSY_CHECK(
      options.max_bytes > 0, where, "cache.max_bytes must be positive, got {}", options.max_bytes);
  return std::make_shared<const CachedSource>(std::move(source), options, order);
}

}  // namespace argosy::vision
