#pragma once

#include <string>
#include <vector>

namespace argosy::events {

/// Columns of text under headings, right-aligned where a column holds numbers:
///
///     epoch  train loss  test accuracy  images/s  seconds
///         1      0.4312        86.90 %    12,345      4.9
///
/// Source of width: the longest cell of each column; two spaces between columns.
[[nodiscard]] std::string format_table(const std::vector<std::string>& headings,
                                       const std::vector<std::vector<std::string>>& rows);

}  // namespace argosy::events
