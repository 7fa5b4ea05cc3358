#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"

namespace argosy::datasets {

struct Shape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  [[nodiscard]] int64_t bytes() const { return height * width * channels; }
};

/// The samples of one split. N of them.
struct PixelBlock {
  std::string split{};
  std::vector<uint8_t> pixels{};  ///< N × height × width × channels
  int64_t count = 0;              ///< N
  std::vector<int64_t> labels{};  ///< N × labels of a sample, or none
  std::vector<float> points{};    ///< N × points of a sample × 2, or none
};

/// A set whose pictures all have one shape and lie unpacked in memory.
class PixelSource final : public Source {
 public:
  /// Fills about.splits.
  PixelSource(About about, Shape shape, std::vector<PixelBlock> blocks);

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] formats::PackedSample get(int64_t index,
                                          std::vector<uint8_t>& scratch) const override;

 private:
  Shape shape_;
  std::vector<PixelBlock> blocks_;
  int64_t size_ = 0;
};

}  // namespace argosy::datasets
