#include "argosy/ps/update_mode.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::ps {

void LateOptions::validate(UpdateMode mode) const {
  ARGOSY_CHECK(std::isfinite(compensation) && compensation >= 0,
               "ps.late",
               "delay_compensation: expected a number from 0 on, got {}",
               compensation);
  ARGOSY_CHECK(!any() || mode == UpdateMode::kAsync || mode == UpdateMode::kHalfAsync,
               "ps.late",
               "{} is for kAsync and kHalfAsync: in {}",
               scales_rates ? "staleness_scaled" : "delay_compensation",
               mode == UpdateMode::kSync ? "kSync no gradient is late"
                                         : "kGeo workers send differences, and no gradients");
}

double rate_of_late(double lr, uint64_t staleness) {
  return lr / static_cast<double>(std::max<uint64_t>(staleness, 1));
}

void compensate(std::span<float> gradient, const WeightChange& weights, double lambda) {
  const auto factor = static_cast<float>(lambda);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float g = gradient[i];
    gradient[i] = g + factor * (g * g) * (weights.now[i] - weights.read[i]);
  }
}

}  // namespace argosy::ps
