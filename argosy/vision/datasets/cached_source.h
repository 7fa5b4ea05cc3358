#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "argosy/data/sample_cache.h"
#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/vision/datasets/picture_dataset.h"

// Internal to the data sets.
namespace argosy::vision {

/// A source that keeps samples in memory once they were read, up to a number of bytes, as they are
/// or decoded to `order`. A sample that does not fit is returned in the same form, made anew each
/// time. So pixels do not depend on which samples are kept, which depends on who comes first.
class CachedSource final : public datasets::Source {
 public:
  CachedSource(std::shared_ptr<const datasets::Source> source,
               const PictureCache& options,
               image::Order order);
  ~CachedSource() override;
  CachedSource(const CachedSource&) = delete;
  CachedSource& operator=(const CachedSource&) = delete;
  CachedSource(CachedSource&&) = delete;
  CachedSource& operator=(CachedSource&&) = delete;

  [[nodiscard]] int64_t size() const override { return source_->size(); }
  [[nodiscard]] datasets::Sample get(int64_t index, datasets::Scratch& scratch) const override;
  [[nodiscard]] std::span<const int64_t> labels(int64_t index,
                                                datasets::Scratch& scratch) const override {
    return source_->labels(index, scratch);
  }
  [[nodiscard]] image::Image decoded(const datasets::Sample& sample,
                                     const datasets::PictureAs& as = {}) const override {
    return source_->decoded(sample, as);
  }
  [[nodiscard]] data::CacheStats stats() const;

 private:
  struct Kept;
  [[nodiscard]] datasets::Sample in_form(datasets::Sample sample, datasets::Scratch& scratch) const;
  [[nodiscard]] const Kept* keep(int64_t index, const datasets::Sample& sample) const;

  std::shared_ptr<const datasets::Source> source_;
  const PictureCache options_;
  const image::Order order_;
  mutable std::vector<std::atomic<const Kept*>> kept_;  // by index; null: not kept
  mutable std::atomic<int64_t> hits_{0};
  mutable std::atomic<int64_t> misses_{0};
  mutable std::atomic<int64_t> count_{0};
  mutable std::atomic<int64_t> bytes_{0};
  mutable std::atomic<bool> full_{false};
};

/// Returns `source` with such a cache. nullptr: the options keep nothing.
/// Errors: UsageError `[where] …` for a limit that is not positive.
[[nodiscard]] std::shared_ptr<const CachedSource> cached(
    const char* where,
    std::shared_ptr<const datasets::Source> source,
    const PictureCache& options,
    image::Order order);

}  // namespace argosy::vision
