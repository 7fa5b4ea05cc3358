#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/runs/picture_page.h"

namespace argosy::datatool {

/// How bars are drawn in text: eighths of a character, or plain ASCII for pipes and old terminals.
enum class BarStyle { kBlocks, kPlain };

/// kBlocks for a terminal that says it can UTF-8.
[[nodiscard]] BarStyle bar_style_of(int fd);

/// One line for each bar, `columns` wide at most:
///
///     airplane    1,012 ##########
///     automobile    984 #########
[[nodiscard]] std::string bar_chart(const std::vector<runs::Bar>& bars,
                                    int columns,
                                    BarStyle style);

}  // namespace argosy::datatool
