#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "argosy/formats/criteo.h"

namespace argosy::formats {

/// Draws lines of clicks whose truth is known: how well a model learns can be measured against what
/// can be learned at all.
///
///     formats::ClickTruth truth(1);
///     formats::ClickBatch batch;
///     truth.draw(batch);
///     append_criteo_line(batch, 0, text);
///
/// Column i of the categories has up to 10^(1 + i % 5) of them, few of which are seen often. A
/// tenth of the numbers is missing. The first eight columns add something to the log odds of a
/// click, two pairs of columns do so together, and so does the first number. The other columns mean
/// nothing. Not thread-safe.
class ClickTruth final {
 public:
  explicit ClickTruth(uint64_t seed) : random_(seed) {}

  /// Appends a line. The same seed gives the same lines with every compiler and standard library;
  /// only pow, exp and log1p are the system's own.
  void draw(ClickBatch& to);
  /// Returns the log odds of a click on that line, as it was drawn or as it was read back.
  [[nodiscard]] static double log_odds(const ClickBatch& batch, size_t row);

 private:
  /// Returns a number in [0, 1). A distribution of the standard library would be its own.
  [[nodiscard]] double uniform() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }

  std::mt19937_64 random_;
};

}  // namespace argosy::formats
