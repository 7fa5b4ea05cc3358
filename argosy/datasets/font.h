#pragma once

#include <array>
#include <cstdint>

namespace argosy::datasets {

inline constexpr int kGlyphHeight = 9;
inline constexpr int kGlyphWidth = 5;

/// Rows of a character from the top; bit 4 is the left pixel. Seven stand on the line, two reach
/// below. What is not printable ASCII is a '?'.
[[nodiscard]] const std::array<uint8_t, kGlyphHeight>& glyph(char character);

}  // namespace argosy::datasets
