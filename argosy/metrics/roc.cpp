#include "argosy/metrics/roc.h"

#include <algorithm>
#include <limits>

namespace argosy::metrics {

namespace {

/// Counts pairs by points, the highest score first.
class RocPairs final {
 public:
  void add(const RocPoint& point) {
    halves_ += static_cast<unsigned __int128>(2 * above_.positives + point.positives) *
               static_cast<uint64_t>(point.negatives);
    above_.positives += point.positives;
    above_.negatives += point.negatives;
  }
  [[nodiscard]] double share() const {
    if (above_.positives == 0 || above_.negatives == 0) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    const auto pairs =
        static_cast<unsigned __int128>(above_.positives) * static_cast<uint64_t>(above_.negatives);
    return static_cast<double>(halves_) / (2 * static_cast<double>(pairs));
  }

 private:
  unsigned __int128 halves_ = 0;
  RocPoint above_{};
};

}  // namespace

void for_each_roc_point(std::span<const double> positives,
                        std::span<const double> negatives,
                        const std::function<void(const RocPoint&)>& visit) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
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
    visit(point);
  }
}

std::vector<RocPoint> roc_points(std::span<const double> positives,
                                 std::span<const double> negatives) {
  std::vector<RocPoint> points;
  for_each_roc_point(positives, negatives, [&](const RocPoint& point) { points.push_back(point); });
  return points;
}

double roc_area(std::span<const RocPoint> points) {
  RocPairs pairs;
  for (const RocPoint& point : points) {
    pairs.add(point);
  }
  return pairs.share();
}

double roc_area_of_sorted(std::span<const double> positives, std::span<const double> negatives) {
  RocPairs pairs;
  for_each_roc_point(positives, negatives, [&](const RocPoint& point) { pairs.add(point); });
  return pairs.share();
}

double roc_area(std::vector<double> positives, std::vector<double> negatives) {
  std::ranges::sort(positives);
  std::ranges::sort(negatives);
  return roc_area_of_sorted(positives, negatives);
}

}  // namespace argosy::metrics
