#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/image/codec.h"
#include "argosy/image/resize.h"

#include "apps/data/info_report.h"

namespace argosy::datatool {
namespace {

using datasets::Source;

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

/// Some of each class, or of all where there are no classes.
std::vector<int64_t> choose(const Findings& findings) {
  constexpr size_t kFewClasses = 20;
  const Source& source = *findings.source;
  std::vector<std::vector<int64_t>> of_class(findings.survey.per_class.size());
  std::vector<int64_t> others;
  for (int64_t i = 0; i < source.size(); ++i) {
    if (const std::optional<int64_t> label = label_or_none(source, i); label) {
      const bool known = *label >= 0 && *label < std::ssize(of_class);
      (known ? of_class[static_cast<size_t>(*label)] : others).push_back(i);
    }
  }
  if (of_class.empty()) {
    return spread_over(others, source.about().point_names.empty() ? 48 : 24);
  }
  std::vector<int64_t> chosen;
  for (const std::vector<int64_t>& all : of_class) {
    const std::vector<int64_t> some = spread_over(all, of_class.size() <= kFewClasses ? 10 : 1);
    chosen.insert(chosen.end(), some.begin(), some.end());
  }
  return chosen;
}

/// What can be had of the picture, and says so in the caption where that is not all.
void add_picture(const Source& source,
                 const datasets::Sample& sample,
                 int side,
                 runs::PagePicture& shown) {
  image::Image picture;
  try {
    picture = source.decoded(sample);
  } catch (const DataError&) {
    shown.caption += " (damaged)";
    try {
      picture = source.decoded(sample, {.damaged = image::Damaged::kAccept});
    } catch (const DataError&) {
      return;
    }
  }
  shown.width = picture.width();
  shown.height = picture.height();
  const std::vector<uint8_t> png = image::encode_png(image::shrunk(picture, 2 * side));
  shown.png.assign(png.begin(), png.end());
}

runs::PagePicture shown(const Findings& findings, int64_t index, int side) {
  const datasets::About& about = findings.source->about();
  datasets::Scratch scratch;
  const datasets::Sample sample = findings.source->get(index, scratch);
  runs::PagePicture shown{.caption = fmt::format("{}", index)};
  if (const int64_t label = findings.source->label(index); label >= 0) {
    const auto at = static_cast<size_t>(label);
    shown.caption = at < about.classes.size() ? about.classes[at] : fmt::format("{}", label);
  }
  const auto known = std::ranges::count_if(sample.points, [](float x) { return std::isfinite(x); });
  if (known < std::ssize(sample.points)) {
    shown.caption += fmt::format(": {} of {} points", known / 2, sample.points.size() / 2);
  }
  shown.points = {sample.points.begin(), sample.points.end()};
  add_picture(*findings.source, sample, side, shown);
  return shown;
}

}  // namespace

runs::PicturePage info_sheet(const Findings& findings) {
  const datasets::About& about = findings.source->about();
  runs::PicturePage page{.title = name_of(about),
                         .note = text::count(findings.survey.samples) + " samples",
                         .bars = class_bars(findings),
                         .side = about.point_names.empty() ? 104 : 192};
  if (!findings.survey.per_class.empty()) {
    page.note += fmt::format(", {} classes", findings.survey.per_class.size());
  }
  if (!about.point_names.empty()) {
    page.note += fmt::format(", {} points", about.point_names.size());
  }
  for (const int64_t index : choose(findings)) {
    page.pictures.push_back(shown(findings, index, page.side));
  }
  return page;
}

}  // namespace argosy::datatool
