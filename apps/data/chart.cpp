#include "apps/data/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/base/strings.h"
#include "argosy/base/terminal.h"
#include "argosy/base/text.h"

namespace argosy::datatool {
namespace {

using runs::Bar;

int64_t greatest(const std::vector<Bar>& bars) {
  int64_t most = 1;
  for (const Bar& bar : bars) {
    most = std::max(most, bar.value);
  }
  return most;
}

std::string bar_text(double cells, BarStyle style) {
  if (style == BarStyle::kPlain) {
    return std::string(static_cast<size_t>(std::lround(cells)), '#');
  }
  constexpr std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::lround(cells * 8));
  std::string text;
  for (size_t i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  return text + kEighths.at(eighths % 8);
}

std::string padded(const std::string& text, size_t columns) {
  const std::string shown(strings::first_columns(text, columns));
  return shown + std::string(columns - strings::columns(shown), ' ');
}

}  // namespace

BarStyle bar_style_of(int fd) {
  return terminal::shows_blocks(fd) ? BarStyle::kBlocks : BarStyle::kPlain;
}

std::string bar_chart(const std::vector<Bar>& bars, int columns, BarStyle style) {
  size_t name_width = 0;
  size_t number_width = 0;
  for (const Bar& bar : bars) {
    name_width = std::max(name_width, strings::columns(bar.name));
    number_width = std::max(number_width, text::count(bar.value).size());
  }
  name_width = std::min(name_width, static_cast<size_t>(std::max(columns / 3, 1)));
  const auto taken = static_cast<int>(name_width + number_width) + 2;
  const int cells = std::clamp(columns - taken, 1, 60);
  const int64_t most = greatest(bars);
  std::string text;
  for (const Bar& bar : bars) {
    const double share = static_cast<double>(bar.value) / static_cast<double>(most);
    const std::string drawn = bar_text(share * cells, style);
    text += fmt::format("{} {:>{}}{}{}\n",
                        padded(bar.name, name_width),
                        text::count(bar.value),
                        number_width,
                        drawn.empty() ? "" : " ",
                        drawn);
  }
  return text;
}

}  // namespace argosy::datatool
