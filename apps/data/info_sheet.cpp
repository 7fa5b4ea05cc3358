#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// The classes that a sample is shown under. None: it is a damaged record, of which there is
/// nothing to show.
std::optional<std::vector<int64_t>> classes_or_none(const Source& source, int64_t index) {
  try {
    datasets::Scratch scratch;
    const std::span<const int64_t> labels = source.labels(index, scratch);
    const bool all = source.about().task == datasets::Task::kTags;
    return std::vector<int64_t>(labels.begin(),
                                all || labels.empty() ? labels.end() : labels.begin() + 1);
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
    const std::optional<std::vector<int64_t>> classes = classes_or_none(source, i);
    for (const int64_t label : classes.value_or(std::vector<int64_t>{})) {
      const bool known = label >= 0 && label < std::ssize(of_class);
      (known ? of_class[static_cast<size_t>(label)] : others).push_back(i);
    }
    if (classes.has_value() && classes->empty()) {
      others.push_back(i);
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
  std::vector<std::string> names;
  for (const int64_t label :
       classes_or_none(*findings.source, index).value_or(std::vector<int64_t>{})) {
    const auto at = static_cast<size_t>(label);
    names.push_back(at < about.classes.size() ? about.classes[at] : fmt::format("{}", label));
  }
  if (!names.empty()) {
    shown.caption = fmt::format("{}", fmt::join(names, ", "));
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
