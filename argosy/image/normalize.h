#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace argosy::image {

/// A u8 value becomes the f32 ((value / divisor) - mean) / std. Each step is rounded to f32, as by
/// ToTensor and then Normalize.
struct Normalization {
  float divisor = 1;  ///< 255: values become [0, 1]; 1: they stay
  int channels = 3;   ///< 1 to 4
  std::array<float, 4> mean{0, 0, 0, 0};
  std::array<float, 4> std{1, 1, 1, 1};  ///< none may be 0
};

/// The place to which the channels of a row go.
struct RowTarget {
  float* first = nullptr;     ///< the first pixel's first channel
  size_t channel_stride = 1;  ///< floats from a channel to the next: 1, or a plane's size
};

/// Turns rows of u8 pixels into f32. It is the last step of making a batch, while the row is in the
/// cache.
///
///     Normalizer normalize({.divisor = 255, .channels = 3, .mean = …, .std = …});
///     normalize.row(pixels, 224, {.first = batch + y * 224, .channel_stride = 224 * 224});
///
/// The bits equal those of the three operations in f32, whichever way they are computed. It is a
/// value, and copies share the tables. Thread-safe.
/// Errors: UsageError for channels outside 1 to 4, and for a divisor or std that is 0 or not
/// finite.
/// Cost: 224 × 224 × 3 values: see normalize_bench.cpp.
class Normalizer final {
 public:
  explicit Normalizer(const Normalization& wanted);

  /// Converts `width` pixels of `channels` values side by side. In the target the channels also lie
  /// side by side (channel_stride 1), or each in a plane of its own.
  void row(const uint8_t* pixels, int width, const RowTarget& target) const;

  /// Converts one value. 0 ≤ channel < channels.
  [[nodiscard]] float operator()(int channel, uint8_t value) const;

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

}  // namespace argosy::image
