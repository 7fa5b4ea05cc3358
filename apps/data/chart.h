#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/runs/picture_page.h"

namespace argosy::datatool {

/// How bars are drawn in text: eighths of a character, or plain ASCII for pipes and old terminals.
enum class BarStyle { kBlocks, kPlain };

/// Returns kBlocks for a terminal whose locale says UTF-8.
[[nodiscard]] BarStyle bar_style_of(int fd);

/// Returns one line for each bar, at most `columns` wide:
///
///     airplane    1,012 ##########
///     automobile    984 #########
[[nodiscard]] std::string bar_chart(const std::vector<runs::Bar>& bars,
                                    int columns,
                                    BarStyle style);

}  // namespace argosy::datatool
