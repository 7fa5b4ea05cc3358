#pragma once

#include <array>
#include <string>
#include <string_view>

#include "argosy/data/random.h"

namespace argosy::vision {

/// A range from low to high, from which random numbers are drawn evenly. low = high is a fixed
/// number.
struct Range {
  double low = 0;
  double high = 0;

  constexpr Range() = default;
  /// Needs both numbers: an aggregate would read `.shear_x = -10` as {-10, 0}.
  constexpr Range(double low, double high) : low(low), high(high) {}
  bool operator==(const Range&) const = default;

  [[nodiscard]] double draw(data::Random& random) const { return random.uniform(low, high); }
};

/// How far a factor may vary: a number, or the range itself.
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
