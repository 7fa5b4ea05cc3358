#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

/// The N samples of one split.
struct PixelBlock {
  std::string split{};
  std::vector<uint8_t> pixels{};  ///< N × height × width × channels
  int64_t count = 0;              ///< N
  std::vector<int64_t> labels{};  ///< N × labels of a sample; empty: no labels
  std::vector<float> points{};    ///< N × points of a sample × 2; empty: no points
  /// Returns the block with its numbers, which are read at the first access to a sample of it.
  /// Unset: they are here.
  std::function<PixelBlock()> read{};
};

/// A set whose pictures all have one shape and lie unpacked in memory. A block may be read at the
/// first access.
class PixelSource final : public Source {
 public:
  /// `about` has the pictures' shape. The constructor adds the splits.
  PixelSource(About about, std::vector<PixelBlock> blocks);

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] Sample get(int64_t index, Scratch& scratch) const override;
  [[nodiscard]] image::Image decoded(const Sample& sample,
                                     const PictureAs& as = {}) const override {
    return unpacked(sample.picture, as.order);
  }

 private:
  struct Place {
    int64_t count = 0;
    mutable std::mutex mutex{};
    mutable std::atomic<bool> here = false;
    mutable PixelBlock block{};  // whole once it is here
  };
  [[nodiscard]] const PixelBlock& block_of(const Place& place) const;

  std::deque<Place> places_;
  int64_t size_ = 0;
};

}  // namespace argosy::datasets
