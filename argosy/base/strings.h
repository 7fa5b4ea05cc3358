#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::strings {

/// Pieces between separators; n separators give n + 1 pieces, empty ones included.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

[[nodiscard]] std::string_view trim(std::string_view text);

/// ASCII only.
[[nodiscard]] std::string to_lower(std::string_view text);

/// The whole text as a number; nullopt when a character is left over or it does not fit.
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text);

/// The same for a number like "0.25" or "1e-3"; "nan" and "inf" are numbers here.
[[nodiscard]] std::optional<double> parse_double(std::string_view text);

/// Columns that UTF-8 text takes on a terminal, one for each character (wide ones count as one).
[[nodiscard]] size_t columns(std::string_view text);
/// The part at the front of `text` that takes at most `most` columns, whole characters.
[[nodiscard]] std::string_view first_columns(std::string_view text, size_t most);

/// "0, 2, 5-7": how messages name ranks. Expects ascending numbers.
[[nodiscard]] std::string ranges(const std::vector<int>& numbers);

/// The candidate that a typing error away from `word` most likely meant; nullopt when none is near.
/// Distance: Damerau-Levenshtein (restricted), at most a third of the word.
[[nodiscard]] std::optional<std::string> closest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

/// Compares secrets in a time that depends on the lengths only.
[[nodiscard]] bool equal_constant_time(std::string_view a, std::string_view b);

}  // namespace argosy::strings
