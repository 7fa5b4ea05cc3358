#pragma once

#include <array>
#include <string>
#include <string_view>

#include "argosy/data/random.h"

namespace argosy::vision {

/// From low to high: what a random number is drawn from, evenly. low = high is a fixed number.
struct Range {
  double low = 0;
  double high = 0;

  constexpr Range() = default;
  /// Both: an aggregate would take `.shear_x = -10` for {-10, 0}.
  constexpr Range(double low, double high) : low(low), high(high) {}
  bool operator==(const Range&) const = default;

  [[nodiscard]] double draw(data::Random& random) const { return random.uniform(low, high); }
};

/// How far a factor may stray: a number or the range itself.
///
///     ColorJitter({.brightness = 0.2, .contrast = {0.5, 1.5}})
///
/// 0.2 around 1 means [0.8, 1.2], never below 0; around 0 (hue) it means [-0.2, 0.2].
class Spread final {
 public:
  Spread(double around) : around_(around) {}  // NOLINT(google-explicit-constructor)
  Spread(double low, double high) : range_{low, high}, is_range_(true) {}

  /// Errors: UsageError `[where] …` naming the option, unless limits.low ≤ low ≤ high ≤
  /// limits.high.
  [[nodiscard]] Range range(std::string_view where,
                            std::string_view option,
                            double center,
                            const Range& limits) const;

 private:
  double around_ = 0;
  Range range_{};
  bool is_range_ = false;
};

namespace detail {

// Checks of options: UsageError "[where] option …".
/// finite, least ≤ value ≤ most
void check_number(std::string_view where,
                  std::string_view option,
                  double value,
                  const Range& limits);
inline void check_probability(std::string_view where, std::string_view option, double p) {
  check_number(where, option, p, {0, 1});
}
/// finite, least ≤ low ≤ high ≤ most
void check_range(std::string_view where,
                 std::string_view option,
                 const Range& range,
                 const Range& limits);

}  // namespace detail

}  // namespace argosy::vision
