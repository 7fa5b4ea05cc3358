#include "apps/data/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/base/strings.h"
#include "argosy/base/terminal.h"
#include "argosy/base/text.h"
#include "argosy/datasets/canvas.h"
#include "argosy/events/progress_bar.h"

namespace argosy::datatool {
namespace {

using datasets::Canvas;
using datasets::Colour;

constexpr Colour kWhite{255, 255, 255};
constexpr Colour kInk{40, 40, 40};
constexpr Colour kFaint{205, 205, 205};
constexpr int kTextHeight = datasets::kTextHeight;

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

/// Bars below each other: name, bar, number.
image::Image drawn_rows(const std::vector<Bar>& bars, int width) {
  constexpr int kRow = 14;
  int name_width = 0;
  for (const Bar& bar : bars) {
    name_width = std::max(name_width, datasets::text_width(bar.name));
  }
  name_width = std::min(name_width, width / 3);
  const int64_t most = greatest(bars);
  const int left = name_width + 8;
  const int room = width - left - datasets::text_width(text::count(most)) - 8;
  Canvas canvas({.height = kRow * static_cast<int>(bars.size()), .width = width}, kWhite);
  for (int i = 0; i < std::ssize(bars); ++i) {
    const Bar& bar = bars[static_cast<size_t>(i)];
    const int top = i * kRow + 1;
    const int length = static_cast<int>(bar.value * room / most);
    canvas.text({.top = top + 2, .left = 0}, datasets::fitting_text(bar.name, name_width), kInk);
    canvas.fill({.top = top, .left = left, .height = kRow - 3, .width = std::max(length, 1)},
                datasets::class_colour(i));
    canvas.text({.top = top + 2, .left = left + length + 6}, text::count(bar.value), kInk);
  }
  return canvas.picture();
}

/// Bars beside each other, with lines of the scale behind them and every tenth number below.
image::Image drawn_columns(const std::vector<Bar>& bars, int width) {
  constexpr int kHeight = 120;
  constexpr int kBelow = kTextHeight + 6;
  const int64_t most = greatest(bars);
  const int left = datasets::text_width(text::count(most)) + 8;
  const int count = static_cast<int>(bars.size());
  const auto place = [&](int i) { return left + i * (width - left) / count; };
  Canvas canvas({.height = kTextHeight + kHeight + kBelow, .width = width}, kWhite);
  for (const int64_t value : {most, most / 2, int64_t{0}}) {
    const int y = kTextHeight / 2 + kHeight - static_cast<int>(value * kHeight / most);
    canvas.fill({.top = y, .left = left - 3, .height = 1, .width = width - left + 3}, kFaint);
    const std::string text = text::count(value);
    canvas.text(
        {.top = y - kTextHeight / 2, .left = left - 6 - datasets::text_width(text)}, text, kInk);
  }
  for (int i = 0; i < count; ++i) {
    const int height = static_cast<int>(bars[static_cast<size_t>(i)].value * kHeight / most);
    const int x = place(i);
    canvas.fill({.top = kTextHeight / 2 + kHeight - height,
                 .left = x,
                 .height = height,
                 .width = std::max(1, place(i + 1) - x - 1)},
                datasets::class_colour(i));
    if (i % 10 == 0) {
      canvas.text({.top = kTextHeight / 2 + kHeight + 5, .left = x}, std::to_string(i), kInk);
    }
  }
  return canvas.picture();
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

image::Image drawn_bar_chart(const std::vector<Bar>& bars, int width) {
  constexpr size_t kMostRows = 20;
  return bars.size() <= kMostRows ? drawn_rows(bars, width) : drawn_columns(bars, width);
}

}  // namespace argosy::datatool
