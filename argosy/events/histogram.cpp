#include "argosy/events/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "argosy/base/check.h"

namespace argosy::events {
namespace {

std::vector<double> tensorflow_limits() {
  std::vector<double> positive;
  for (double v = 1.0e-12; v < 1.0e20; v *= 1.1) {
    positive.push_back(v);
  }
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> all;
  std::transform(positive.rbegin(), positive.rend(), std::back_inserter(all), std::negate<>());
  all.push_back(0);
  all.insert(all.end(), positive.begin(), positive.end());
  return all;
}

/// Everything but the buckets.
Histogram figures_of(std::span<const float> values) {
  Histogram result{.min = std::numeric_limits<double>::infinity(),
                   .max = -std::numeric_limits<double>::infinity()};
  for (const float value : values) {
    const double v = value;
    if (std::isfinite(v)) {
      result.min = std::min(result.min, v);
      result.max = std::max(result.max, v);
      result.num += 1;
      result.sum += v;
      result.sum_squares += v * v;
    }
  }
  if (result.num == 0) {
    result.min = result.max = 0;
  }
  return result;
}

}  // namespace

Histogram tensorflow_histogram(std::span<const float> values) {
  static const std::vector<double> limits = tensorflow_limits();
  Histogram result = figures_of(values);
  std::vector<double> counts(limits.size());
  for (const float value : values) {
    if (std::isfinite(value)) {
      const auto above = std::upper_bound(limits.begin(), limits.end(), double{value});
      counts[static_cast<size_t>(above - limits.begin())] += 1;
    }
  }
  for (size_t i = 0; i < limits.size();) {
    double limit = limits[i];
    const double count = counts[i++];
    while (count == 0 && i < limits.size() && counts[i] == 0) {
      limit = limits[i++];
    }
    result.limits.push_back(limit);
    result.counts.push_back(count);
  }
  return result;
}

Histogram even_histogram(std::span<const float> values, int buckets) {
  ARGOSY_CHECK(buckets >= 1 && buckets <= 1'000'000,
               "events.add_histogram",
               "expected 1 to 1,000,000 buckets, got {}",
               buckets);
  Histogram result = figures_of(values);
  double low = result.num > 0 ? result.min : 0;
  double high = result.num > 0 ? result.max : 1;
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  for (int i = 0; i <= buckets; ++i) {
    result.limits.push_back(i == buckets ? high : low + (high - low) * i / buckets);
  }
  result.counts.assign(static_cast<size_t>(buckets), 0);
  for (const float value : values) {
    if (std::isfinite(value)) {
      const auto above =
          std::upper_bound(result.limits.begin(), result.limits.end(), double{value});
      const ptrdiff_t place = above - result.limits.begin() - 1;
      result.counts[static_cast<size_t>(std::clamp<ptrdiff_t>(place, 0, buckets - 1))] += 1;
    }
  }
  return result;
}

}  // namespace argosy::events
