#pragma once

#include <array>
#include <cstdint>

namespace argosy::samples {

inline constexpr int kGlyphHeight = 7;
inline constexpr int kGlyphWidth = 5;

/// Rows of a character from the top; bit 4 is the left pixel. What is not printable ASCII is a '?'.
[[nodiscard]] const std::array<uint8_t, kGlyphHeight>& glyph(char character);

}  // namespace argosy::samples
