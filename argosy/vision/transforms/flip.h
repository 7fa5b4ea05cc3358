#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/picture.h"

namespace argosy::vision {

struct FlipOptions {
  double p = 0.5;
  /// Pairs of rows of the points that change places with the flip: in the mirror the left eye is a
  /// right eye.
  std::vector<std::pair<int64_t, int64_t>> keypoint_pairs{};
};

/// Exchanges left and right with probability p.
///
///     RandomHorizontalFlip()      RandomHorizontalFlip({.keypoint_pairs = faces.pairs()})
///
/// Errors: UsageError for p outside [0, 1]; at the call for a pair of rows that the points do not
/// have.
class RandomHorizontalFlip final {
 public:
  static constexpr std::string_view kName = "RandomHorizontalFlip";
  explicit RandomHorizontalFlip(double p = 0.5) : RandomHorizontalFlip(FlipOptions{.p = p}) {}
  explicit RandomHorizontalFlip(FlipOptions options);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  /// Draws whether it flips.
  [[nodiscard]] bool draw(data::Random& random) const { return random.bernoulli(options_.p); }

 private:
  FlipOptions options_;
};

/// Exchanges top and bottom with probability p; otherwise as RandomHorizontalFlip.
class RandomVerticalFlip final {
 public:
  static constexpr std::string_view kName = "RandomVerticalFlip";
  explicit RandomVerticalFlip(double p = 0.5) : RandomVerticalFlip(FlipOptions{.p = p}) {}
  explicit RandomVerticalFlip(FlipOptions options);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

  /// Draws whether it flips.
  [[nodiscard]] bool draw(data::Random& random) const { return random.bernoulli(options_.p); }

 private:
  FlipOptions options_;
};

}  // namespace argosy::vision
