#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/random.h"
#include "argosy/datasets/source.h"
#include "argosy/image/image.h"
#include "argosy/vision/transforms/picture.h"

// Internal to the room.
namespace argosy::vision {

class Compose;

/// The place for the values of one picture: f32 at first + channel × channel_stride + y ×
/// row_stride, pixels of a row side by side.
struct PictureTarget {
  float* first = nullptr;
  int64_t channel_stride = 0;  ///< 1: the channels of a pixel side by side; or a plane's size
  int64_t row_stride = 0;
};

/// Turns a stored picture into numbers of a batch without a picture in between.
/// Thread-safe: everything is const.
class OnePass {
 public:
  OnePass() = default;
  virtual ~OnePass() = default;
  OnePass(const OnePass&) = delete;
  OnePass& operator=(const OnePass&) = delete;
  OnePass(OnePass&&) = delete;
  OnePass& operator=(OnePass&&) = delete;

  /// Returns the sizes of a result: {C, H, W}.
  [[nodiscard]] virtual std::vector<int64_t> sizes() const = 0;
  /// True if every pixel of a stored picture of this size keeps its place.
  [[nodiscard]] virtual bool keeps_places(image::Size stored) const = 0;
  /// Writes a picture to `target`. Errors: DataError with the picture's name.
  virtual void write(const datasets::Source& source,
                     const datasets::Sample& sample,
                     data::Random& random,
                     const PictureTarget& target) const = 0;
};

/// Runs a chain with steps for a data set. The data set calls it through the chain, so a program
/// without a chain links no transform and no codec.
class ChainRunner {
 public:
  virtual ~ChainRunner() = default;
  /// Returns the chain in one pass. nullptr: that is impossible.
  [[nodiscard]] virtual std::unique_ptr<const OnePass> one_pass(const Compose& chain,
                                                                image::Order order) const = 0;
  /// Runs the chain on a picture. A picture without points gives none.
  [[nodiscard]] virtual KeypointTensor run(const Compose& chain,
                                           KeypointImage picture,
                                           data::Random& random) const = 0;

 protected:
  ChainRunner() = default;
  ChainRunner(const ChainRunner&) = default;
  ChainRunner& operator=(const ChainRunner&) = default;
};

/// Returns the runner of all chains.
[[nodiscard]] const ChainRunner& chain_runner();

}  // namespace argosy::vision
