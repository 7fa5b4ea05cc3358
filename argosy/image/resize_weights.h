#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/image/resize.h"

// Internal to the room: what resampling along one axis adds up.
namespace argosy::image::detail {

/// Of each new pixel: the first old one that it reads, how many, and their weights, which sum to 1.
template <typename Weight>
struct Taps {
  std::vector<int> first{};
  std::vector<int> count{};       ///< at least 1 each
  std::vector<Weight> weights{};  ///< `most` of each new pixel, 0 behind its count
  int most = 0;

  [[nodiscard]] int size() const { return static_cast<int>(first.size()); }
  [[nodiscard]] const Weight* of(int i) const {
    return weights.data() + static_cast<size_t>(i) * static_cast<size_t>(most);
  }
};

/// Fixed point of u8 sums: 8 bits of a pixel, 22 of a weight, 2 for weights below 0 and above 1.
inline constexpr int kFractionBits = 22;

/// The taps of `to` new pixels that cover [begin, end) of `from` old ones.
void make_taps(int from,
               float begin,
               float end,
               int to,
               Interpolation interpolation,
               Antialias antialias,
               Taps<double>& taps);

/// Rounds weights to kFractionBits.
void to_fixed(const Taps<double>& taps, Taps<int32_t>& fixed);

/// Forgets all new pixels but those from `begin` to before `end`.
void keep(int begin, int end, Taps<int32_t>& taps);

/// Exchanges first and last new pixel, and so on.
void reverse(Taps<int32_t>& taps);

}  // namespace argosy::image::detail
