#pragma once

#include <span>
#include <vector>

namespace argosy::events {

/// A histogram: counts[i] values lie in [limits[i-1], limits[i]).
struct Histogram {
  double min = 0;
  double max = 0;
  double num = 0;  ///< number of finite values; the others are left out
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits{};  ///< ascending
  std::vector<double> counts{};
};

/// Returns a histogram over TensorFlow's default limits: 0 and ±1e-12 · 1.1^k below 1e20.
/// Neighbouring empty buckets are joined. Without a finite value there is one empty bucket.
/// Cost: 15 ns a value. Source: TensorFlow 2, core/lib/histogram (InitDefaultBucketsInner,
/// EncodeToProto), which PyTorch's `bins="tensorflow"` follows too.
[[nodiscard]] Histogram tensorflow_histogram(std::span<const float> values);

/// Returns a histogram over `buckets` ≥ 1 of equal width, from the smallest finite value to the
/// largest. `limits` has one entry more than `counts`: the lower end. The last bucket includes its
/// upper limit. Equal values lie in [v - 0.5, v + 0.5]; without a value the range is [0, 1].
/// Source: numpy.histogram.
[[nodiscard]] Histogram even_histogram(std::span<const float> values, int buckets);

}  // namespace argosy::events
