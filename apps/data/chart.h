#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/image/image.h"

namespace argosy::datatool {

struct Bar {
  std::string name{};
  int64_t value = 0;
};

/// How bars are drawn in text: eighths of a character, or plain ASCII for pipes and old terminals.
enum class BarStyle { kBlocks, kPlain };

/// kBlocks for a terminal that says it can UTF-8.
[[nodiscard]] BarStyle bar_style_of(int fd);

/// One line for each bar, `columns` wide at most:
///
///     airplane    1,012 ##########
///     automobile    984 #########
[[nodiscard]] std::string bar_chart(const std::vector<Bar>& bars, int columns, BarStyle style);

/// The same as a picture `width` pixels wide: named bars below each other, or above each other
/// where they are many. Bars have the colours of the classes.
[[nodiscard]] image::Image drawn_bar_chart(const std::vector<Bar>& bars, int width);

}  // namespace argosy::datatool
