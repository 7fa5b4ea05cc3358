#include "argosy/formats/click_truth.h"

#include <cmath>
#include <limits>
#include <utility>

#include "argosy/base/mix.h"

namespace argosy::formats {
namespace {

/// A number in [-1, 1) that belongs to the id.
double taste(uint64_t id, uint64_t kind) {
  return 2 * static_cast<double>(to_unit(mixed(mixed(kind ^ mixed(id))))) - 1;
}

}  // namespace

void ClickTruth::draw(ClickBatch& to) {
  for (size_t i = 0; i < ClickBatch::kNumbers; ++i) {
    const bool missing = uniform() < 0.1;
    to.numbers.push_back(missing ? std::numeric_limits<float>::quiet_NaN()
                                 : std::floor(static_cast<float>(std::pow(1000.0, uniform()))));
  }
  for (uint64_t i = 0; i < ClickBatch::kCategories; ++i) {
    const double most = 1.0 + static_cast<double>(i % 5);
    const auto category = static_cast<uint64_t>(std::pow(10.0, most * uniform()));
    to.categories.push_back((i + 1) << 32U | category);
  }
  const double odds = log_odds(to, to.categories.size() / ClickBatch::kCategories - 1);
  to.clicked.push_back(uniform() < 1 / (1 + std::exp(-odds)) ? 1.0F : 0.0F);
}

double ClickTruth::log_odds(const ClickBatch& batch, size_t row) {
  const uint64_t* const ids = &batch.categories[row * ClickBatch::kCategories];
  double odds = -1.2;
  for (size_t i = 0; i < 8; ++i) {
    odds += 0.8 * taste(ids[i], 1);
  }
  for (const auto& [one, other] : {std::pair(0, 1), std::pair(2, 3)}) {
    odds += 2.5 * taste(ids[one] % 64, 2) * taste(ids[other] % 64, 3);
  }
  const float number = batch.numbers[row * ClickBatch::kNumbers];
  return odds + (std::isnan(number) ? 0.0 : 0.3 * std::log1p(static_cast<double>(number)) - 0.6);
}

}  // namespace argosy::formats
