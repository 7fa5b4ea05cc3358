#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/datasets/contact_sheet.h"
#include "argosy/events/progress_bar.h"

#include "apps/data/info_report.h"

namespace argosy::datatool {
namespace {

using datasets::Canvas;
using datasets::Colour;
using datasets::ContactSheetOptions;
using datasets::Source;
using datasets::Tile;

constexpr Colour kWhite{255, 255, 255};
constexpr Colour kInk{40, 40, 40};

/// `most` of `all`, evenly spaced.
std::vector<int64_t> spread_over(const std::vector<int64_t>& all, int64_t most) {
  const auto count = std::min(most, std::ssize(all));
  std::vector<int64_t> some;
  for (int64_t i = 0; i < count; ++i) {
    some.push_back(all[static_cast<size_t>(i * std::ssize(all) / count)]);
  }
  return some;
}

/// None: the sample is a damaged record, of which there is nothing to show.
std::optional<int64_t> label_or_none(const Source& source, int64_t index) {
  try {
    return source.label(index);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

/// Which samples are shown, and in what grid.
struct Choice {
  std::vector<int64_t> samples{};
  ContactSheetOptions grid{};
};

Choice choose(const Findings& findings) {
  constexpr int kEachClass = 10;
  constexpr size_t kFewClasses = 20;
  const Source& source = *findings.source;
  const bool small = findings.survey.height.most <= 32 && findings.survey.width.most <= 32;
  std::vector<std::vector<int64_t>> of_class(findings.survey.per_class.size());
  std::vector<int64_t> others;
  for (int64_t i = 0; i < source.size(); ++i) {
    if (const std::optional<int64_t> label = label_or_none(source, i); label) {
      const bool known = *label >= 0 && *label < std::ssize(of_class);
      (known ? of_class[static_cast<size_t>(*label)] : others).push_back(i);
    }
  }
  if (!source.about().point_names.empty()) {
    return {spread_over(others, 24), {.columns = 6, .side = 192}};
  }
  if (of_class.empty()) {
    return {spread_over(others, 48), {.columns = 8, .side = small ? 64 : 128}};
  }
  const bool few = of_class.size() <= kFewClasses;
  Choice choice{.grid = {.columns = few ? kEachClass : 12, .side = small && !few ? 64 : 96}};
  for (const std::vector<int64_t>& all : of_class) {
    const std::vector<int64_t> some = spread_over(all, few ? kEachClass : 1);
    choice.samples.insert(choice.samples.end(), some.begin(), some.end());
  }
  return choice;
}

image::Image grey_square() {
  image::Image grey({.height = 8, .width = 8}, image::Order::kGray);
  for (int y = 0; y < grey.height(); ++y) {
    std::fill_n(grey.row<uint8_t>(y), grey.width(), uint8_t{200});
  }
  return grey;
}

/// What can be had of the picture, and says so in the caption where that is not all.
image::Image picture_or_rest(const Source& source,
                             const datasets::Sample& sample,
                             std::string& caption) {
  try {
    return source.decoded(sample);
  } catch (const DataError&) {
    caption += " (damaged)";
  }
  try {
    return source.decoded(sample, {.damaged = image::Damaged::kAccept});
  } catch (const DataError&) {
    return grey_square();
  }
}

Tile tile_of(const Findings& findings, int64_t index) {
  const datasets::About& about = findings.source->about();
  datasets::Scratch scratch;
  const datasets::Sample sample = findings.source->get(index, scratch);
  Tile tile{.caption = fmt::format("{}", index)};
  if (const int64_t label = findings.source->label(index); label >= 0) {
    const auto at = static_cast<size_t>(label);
    tile.caption = at < about.classes.size() ? about.classes[at] : fmt::format("{}", label);
    tile.mark = datasets::class_colour(label);
  }
  const auto known = std::ranges::count_if(sample.points, [](float x) { return std::isfinite(x); });
  if (known < std::ssize(sample.points)) {
    tile.caption += fmt::format(": {} of {} points", known / 2, sample.points.size() / 2);
  }
  tile.dots = {{.points = {sample.points.begin(), sample.points.end()}}};
  tile.picture = picture_or_rest(*findings.source, sample, tile.caption);
  return tile;
}

image::Image title_of(const Findings& findings) {
  constexpr int kScale = 2;
  const datasets::About& about = findings.source->about();
  std::string text =
      fmt::format("{}: {} samples", name_of(about), text::count(findings.survey.samples));
  if (!findings.survey.per_class.empty()) {
    text += fmt::format(", {} classes", findings.survey.per_class.size());
  }
  if (!about.point_names.empty()) {
    text += fmt::format(", {} points", about.point_names.size());
  }
  Canvas canvas(
      {.height = (datasets::kTextHeight + 2) * kScale, .width = datasets::text_width(text, kScale)},
      kWhite);
  canvas.text({}, text, kInk, kScale);
  return canvas.picture();
}

}  // namespace

image::Image info_sheet(const Findings& findings) {
  const Choice choice = choose(findings);
  std::vector<Tile> tiles;
  for (const int64_t index : choice.samples) {
    tiles.push_back(tile_of(findings, index));
  }
  std::vector<image::Image> parts{title_of(findings)};
  image::Image sheet;
  if (!tiles.empty()) {
    sheet = datasets::contact_sheet(tiles, choice.grid);
  }
  if (const std::vector<Bar> bars = class_bars(findings); !bars.empty()) {
    constexpr int kLeast = 640;
    parts.push_back(drawn_bar_chart(bars, std::max(kLeast, sheet.width())));
  }
  if (!sheet.empty()) {
    parts.push_back(std::move(sheet));
  }
  return datasets::stacked(parts);
}

}  // namespace argosy::datatool
