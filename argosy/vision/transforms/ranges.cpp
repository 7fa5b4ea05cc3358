#include "argosy/vision/transforms/ranges.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::vision {

namespace detail {

void check_number(std::string_view where,
                  std::string_view option,
                  double value,
                  const Range& limits) {
  ARGOSY_CHECK(std::isfinite(value) && limits.low <= value && value <= limits.high,
               where,
               "option {} must be from {:g} to {:g}, got {:g}",
               option,
               limits.low,
               limits.high,
               value);
}

void check_range(std::string_view where,
                 std::string_view option,
                 const Range& range,
                 const Range& limits) {
  ARGOSY_CHECK(std::isfinite(range.low) && std::isfinite(range.high) && limits.low <= range.low &&
                   range.low <= range.high && range.high <= limits.high,
               where,
               "option {} must be a range {{low, high}} within [{:g}, {:g}], got {{{:g}, {:g}}}",
               option,
               limits.low,
               limits.high,
               range.low,
               range.high);
}

}  // namespace detail

Range Spread::range(std::string_view where,
                    std::string_view option,
                    double center,
                    const Range& limits) const {
  Range range = range_;
  if (!is_range_) {
    ARGOSY_CHECK(around_ >= 0, where, "option {} must not be negative, got {}", option, around_);
    // Only a factor stops at 0: around it lies 1.
    const double low = center - around_;
    range = {center > 0 ? std::max(low, 0.0) : low, center + around_};
  }
  detail::check_range(where, option, range, limits);
  return range;
}

}  // namespace argosy::vision
