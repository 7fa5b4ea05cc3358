#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "argosy/formats/criteo.h"

namespace argosy::recommend {

inline constexpr int64_t kClickColumns =
    formats::ClickBatch::kCategories + formats::ClickBatch::kNumbers;

/// What a model sees of some lines of clicks.
struct ClickInputs {
  at::Tensor ids{};      ///< i64 [n, kClickColumns]
  at::Tensor clicked{};  ///< f32 [n], 0 or 1
};

/// Returns all columns as ids of one table: a category as it is, a number by its logarithm, in
/// steps of a quarter. Columns share no id; an empty field has an id of its own in each.
[[nodiscard]] ClickInputs click_inputs(const formats::ClickBatch& batch);

}  // namespace argosy::recommend
