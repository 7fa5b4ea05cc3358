#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::strings {

/// Returns the pieces between separators. n separators give n + 1 pieces; pieces may be empty.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

[[nodiscard]] std::string_view trim(std::string_view text);

/// Changes ASCII letters only.
[[nodiscard]] std::string to_lower(std::string_view text);

/// Returns the whole text as a number. nullopt: a character is left over, or the number does not
/// fit.
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text);

/// Returns the whole text as a number like "0.25" or "1e-3". "nan" and "inf" are numbers here.
[[nodiscard]] std::optional<double> parse_double(std::string_view text);

/// Returns how many columns UTF-8 text takes on a terminal. Each character counts as one, wide ones
/// too, and an escape sequence (ESC [ …) as none.
[[nodiscard]] size_t columns(std::string_view text);
/// Returns the longest beginning of `text` that takes at most `most` columns. It cuts no character.
[[nodiscard]] std::string_view first_columns(std::string_view text, size_t most);

/// Returns "0, 2, 5-7", which is how messages name ranks. Expects ascending numbers.
[[nodiscard]] std::string ranges(const std::vector<int>& numbers);

/// Returns the candidate that was most likely meant when `word` has a typing error. nullopt: none
/// is near. Distance: Damerau-Levenshtein (restricted), at most a third of the word.
[[nodiscard]] std::optional<std::string> closest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

/// True if both are equal. The time depends on the lengths only, so it is safe for secrets.
[[nodiscard]] bool equal_constant_time(std::string_view a, std::string_view b);

}  // namespace argosy::strings
