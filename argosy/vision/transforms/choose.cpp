#include "argosy/vision/transforms/choose.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "argosy/base/check.h"
#include "argosy/vision/transforms/ranges.h"

namespace argosy::vision {

RandomApply::RandomApply(std::vector<AnyTransform> steps, double p)
    : steps_(std::move(steps)), p_(p) {
  detail::check_probability("vision.RandomApply", "p", p);
}

Picture RandomApply::operator()(Picture picture, data::Random& random) const {
  if (!random.bernoulli(p_)) {
    return picture;
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    picture = steps_.apply(i, std::move(picture), random);
  }
  return picture;
}

std::string RandomApply::to_string() const {
  return fmt::format("{}({{{}}}, p={:.6g})", kName, steps_.to_string(), p_);
}

RandomChoice::RandomChoice(std::vector<AnyTransform> steps, std::vector<double> weights)
    : steps_(std::move(steps)), weights_(std::move(weights)) {
  constexpr std::string_view kWhere = "vision.RandomChoice";
  ARGOSY_CHECK(steps_.size() > 0, kWhere, "expected at least one transform, got none");
  if (weights_.empty()) {
    weights_.assign(steps_.size(), 1.0);
  }
  ARGOSY_CHECK(weights_.size() == steps_.size(),
               kWhere,
               "expected {} weights, one for each transform, got {}",
               steps_.size(),
               weights_.size());
  double sum = 0;
  for (const double weight : weights_) {
    ARGOSY_CHECK(std::isfinite(weight) && weight >= 0,
                 kWhere,
                 "a weight must not be negative, got {}",
                 weight);
    sum += weight;
  }
  ARGOSY_CHECK(std::isfinite(sum) && sum > 0, kWhere, "the weights add up to {}", sum);
}

Picture RandomChoice::operator()(Picture picture, data::Random& random) const {
  double left = random.uniform() * std::accumulate(weights_.begin(), weights_.end(), 0.0);
  size_t chosen = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] > 0) {  // the last of these, should rounding lead beyond them all
      chosen = i;
    }
    left -= weights_[i];
    if (left < 0) {
      break;
    }
  }
  return steps_.apply(chosen, std::move(picture), random);
}

std::string RandomChoice::to_string() const {
  return fmt::format("{}({})", kName, steps_.to_string());
}

Picture RandomOrder::operator()(Picture picture, data::Random& random) const {
  std::vector<size_t> order(steps_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i) {
    const int64_t other = random.integer(0, static_cast<int64_t>(i) - 1);
    std::swap(order[i - 1], order[static_cast<size_t>(other)]);
  }
  for (const size_t i : order) {
    picture = steps_.apply(i, std::move(picture), random);
  }
  return picture;
}

std::string RandomOrder::to_string() const {
  return fmt::format("{}({})", kName, steps_.to_string());
}

}  // namespace argosy::vision
