#include "argosy/recommend/click_ids.h"

#include <algorithm>
#include <cmath>

#include <ATen/Functions.h>

namespace argosy::recommend {
namespace {

using formats::ClickBatch;

constexpr int64_t kMissingNumber = 1000;  // no logarithm of a float is as large

int64_t id_of_category(uint64_t id, size_t column) {
  return static_cast<int64_t>(id != 0 ? id : (column + 1) << 48U);
}

/// Follows the categories.
int64_t id_of_number(float number, size_t column) {
  const int64_t size = std::isnan(number)
                           ? kMissingNumber
                           : std::lround(4 * std::copysign(std::log1p(std::abs(number)), number));
  return (static_cast<int64_t>(ClickBatch::kCategories + column + 1) << 32) + size;
}

}  // namespace

ClickInputs click_inputs(const ClickBatch& batch) {
  const auto n = static_cast<int64_t>(batch.size());
  ClickInputs inputs{.ids = at::empty({n, kClickColumns}, at::kLong),
                     .clicked = at::empty({n}, at::kFloat)};
  std::ranges::copy(batch.clicked, inputs.clicked.data_ptr<float>());
  auto* to = inputs.ids.data_ptr<int64_t>();
  for (size_t row = 0; row < batch.size(); ++row) {
    for (size_t i = 0; i < ClickBatch::kCategories; ++i) {
      *to++ = id_of_category(batch.categories[row * ClickBatch::kCategories + i], i);
    }
    for (size_t i = 0; i < ClickBatch::kNumbers; ++i) {
      *to++ = id_of_number(batch.numbers[row * ClickBatch::kNumbers + i], i);
    }
  }
  return inputs;
}

}  // namespace argosy::recommend
