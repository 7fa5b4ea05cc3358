#pragma once

#include <span>
#include <vector>

namespace argosy::events {

/// How many of the values lie where: counts[i] of them in [limits[i-1], limits[i]).
struct Histogram {
  double min = 0;
  double max = 0;
  double num = 0;  ///< values that are finite; the others are left out
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits{};  ///< ascending
  std::vector<double> counts{};
};

/// Over TensorFlow's default limits: 0 and ±1e-12 · 1.1^k below 1e20, with neighbouring empty
/// buckets taken together. No finite value gives one empty bucket.
/// Cost: 15 ns a value. Source: TensorFlow 2, core/lib/histogram (InitDefaultBucketsInner,
/// EncodeToProto), which PyTorch's `bins="tensorflow"` follows too.
[[nodiscard]] Histogram tensorflow_histogram(std::span<const float> values);

/// Over `buckets` ≥ 1 of one width from the smallest finite value to the largest; limits has one
/// entry more than counts, the lower end. The last bucket holds its upper limit too. Equal values
/// lie in [v - 0.5, v + 0.5], none in [0, 1]. Source: numpy.histogram.
[[nodiscard]] Histogram even_histogram(std::span<const float> values, int buckets);

}  // namespace argosy::events
