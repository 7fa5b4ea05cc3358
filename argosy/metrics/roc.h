#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace argosy::metrics {

/// The samples of one score.
struct RocPoint {
  int64_t positives = 0;
  int64_t negatives = 0;
};

/// Returns a point for each different score, the highest first. `positives` and `negatives` are the
/// scores of the two classes, ascending.
[[nodiscard]] std::vector<RocPoint> roc_points(std::span<const double> positives,
                                               std::span<const double> negatives);

/// Calls `visit` with a point for each different score, the highest first. See roc_points().
void for_each_roc_point(std::span<const double> positives,
                        std::span<const double> negatives,
                        const std::function<void(const RocPoint&)>& visit);

/// Returns the area under the curve of true over false positives: the share of pairs in which the
/// positive sample has the higher score. Equal scores count half. Pairs are counted in integers, so
/// the result is rounded once. NaN where a class has no sample.
[[nodiscard]] double roc_area(std::span<const RocPoint> points);

/// The same of the scores of the two classes, ascending, without memory for the points.
[[nodiscard]] double roc_area_of_sorted(std::span<const double> positives,
                                        std::span<const double> negatives);

/// Sorts scores without NaN, and returns the area that they make. Move them here where they are
/// many.
[[nodiscard]] double roc_area(std::vector<double> positives, std::vector<double> negatives);

}  // namespace argosy::metrics
