#pragma once

#include <string>
#include <string_view>

#include "argosy/train/callback.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// Returns the options of fit() and of the model's prepare(), by the names that programs use:
/// network, loss, metrics, optimizer, batch_size, epochs …. Options that were not given are left
/// out.
[[nodiscard]] nlohmann::ordered_json description(const Training& training);

/// Returns the same as a Markdown table.
[[nodiscard]] std::string description_table(const Training& training);

/// A stranger's text in a cell of a Markdown table: shown letter by letter, on one line.
[[nodiscard]] std::string markdown_cell(std::string_view text);

}  // namespace argosy::train::detail
