#include "argosy/metrics/roc.h"

#include <algorithm>
#include <limits>

namespace argosy::metrics {

std::vector<RocPoint> roc_points(std::span<const double> positives,
                                 std::span<const double> negatives) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  std::vector<RocPoint> points;
  auto positive = positives.rbegin();
  auto negative = negatives.rbegin();
  while (positive != positives.rend() || negative != negatives.rend()) {
    const double score = std::max(positive == positives.rend() ? kLowest : *positive,
                                  negative == negatives.rend() ? kLowest : *negative);
    RocPoint point;
    for (; positive != positives.rend() && *positive == score; ++positive) {
      ++point.positives;
    }
    for (; negative != negatives.rend() && *negative == score; ++negative) {
      ++point.negatives;
    }
    points.push_back(point);
  }
  return points;
}

double roc_area(std::span<const RocPoint> points) {
  RocPoint all;
  for (const RocPoint& point : points) {
    all.positives += point.positives;
    all.negatives += point.negatives;
  }
  if (all.positives == 0 || all.negatives == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  unsigned __int128 halves = 0;
  int64_t above = 0;  // positives with a higher score
  for (const RocPoint& point : points) {
    halves += static_cast<unsigned __int128>(2 * above + point.positives) *
              static_cast<uint64_t>(point.negatives);
    above += point.positives;
  }
  const auto pairs =
      static_cast<unsigned __int128>(all.positives) * static_cast<uint64_t>(all.negatives);
  return static_cast<double>(halves) / (2 * static_cast<double>(pairs));
}

double roc_area(std::vector<double> positives, std::vector<double> negatives) {
  std::ranges::sort(positives);
  std::ranges::sort(negatives);
  return roc_area(roc_points(positives, negatives));
}

}  // namespace argosy::metrics
