#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/image/resize.h"

// Internal to the room: the weights of resampling along one axis.
namespace argosy::image::detail {

/// For each new pixel: the first old pixel that it reads, how many it reads, and their weights,
/// which sum to 1.
template <typename Weight>
struct Taps {
  std::vector<int> first{};
  std::vector<int> count{};       ///< at least 1 each
  std::vector<Weight> weights{};  ///< `most` for each new pixel; 0 after its count
  int most = 0;

  [[nodiscard]] int size() const { return static_cast<int>(first.size()); }
  [[nodiscard]] const Weight* of(int i) const {
    return weights.data() + static_cast<size_t>(i) * static_cast<size_t>(most);
  }
};

/// Fixed point of u8 sums: 8 bits for a pixel, 22 for a weight, 2 for weights below 0 and above 1.
inline constexpr int kFractionBits = 22;

/// `to` new pixels that cover [begin, end) of `from` old ones.
struct Stretch {
  int from = 0;
  float begin = 0;
  float end = 0;
  int to = 0;
};

/// Computes the taps of the new pixels.
void make_taps(const Stretch& stretch, const ResizeOptions& options, Taps<double>& taps);

/// Rounds weights to kFractionBits.
void to_fixed(const Taps<double>& taps, Taps<int32_t>& fixed);

/// Keeps only the new pixels [begin, end).
void keep(int begin, int end, Taps<int32_t>& taps);

/// Reverses the order of the new pixels.
void reverse(Taps<int32_t>& taps);

}  // namespace argosy::image::detail
