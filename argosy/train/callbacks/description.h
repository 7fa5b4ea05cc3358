#pragma once

#include <string>

#include "argosy/train/callback.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// What fit() was told and what its model was prepared with, by the names that programs use:
/// network, loss, metrics, optimizer, batch_size, epochs … What was not said is left out.
[[nodiscard]] nlohmann::ordered_json description(const Training& training);

/// The same as a table in Markdown.
[[nodiscard]] std::string description_table(const Training& training);

}  // namespace argosy::train::detail
