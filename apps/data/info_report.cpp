#include "apps/data/info_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/image/codec.h"
#include "argosy/image/resize.h"

#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

using datasets::About;
using datasets::Extremes;
using datasets::Source;
using datasets::Survey;

std::string spread(const Extremes& range) {
  return range.least == range.most ? fmt::format("{:g}", range.most)
                                   : fmt::format("{:g} to {:g}", range.least, range.most);
}

std::string samples_line(const Findings& findings) {
  std::vector<std::string> splits;
  for (const datasets::SplitRange& split : findings.source->about().splits) {
    splits.push_back(fmt::format("{} {}", split.name, text::count(split.count)));
  }
  return text::count(findings.survey.samples) +
         (splits.empty() ? "" : fmt::format(": {}", fmt::join(splits, ", ")));
}

std::string pictures_line(const Survey& survey) {
  return fmt::format("{} x {} pixels, {} channel{}",
                     spread(survey.height),
                     spread(survey.width),
                     fmt::join(survey.channels, " or "),
                     survey.channels == std::vector<int64_t>{1} ? "" : "s");
}

/// A mnist.json has numbers of its own: a pixel p stands for p × this in the file.
double scale_of(const datasets::About& about) {
  return about.set == "mnist_json" ? 1 / about.full : 1;
}

std::string values_line(const Findings& findings) {
  const Survey& survey = findings.survey;
  const double scale = scale_of(findings.source->about());
  std::string text = spread({survey.pixels.least * scale, survey.pixels.most * scale});
  if (!survey.figures.empty()) {
    std::string means;
    std::string deviations;
    for (const datasets::ChannelFigures& channel : survey.figures) {
      means += fmt::format(" {:.4f}", channel.mean);
      deviations += fmt::format(" {:.4f}", channel.deviation);
    }
    text += fmt::format("; in [0, 1]: mean{}, std{}", means, deviations);
  }
  return survey.pictures == survey.samples
             ? text
             : text + fmt::format(" (of {} samples)", text::count(survey.pictures));
}

std::string points_line(const Findings& findings) {
  const std::vector<std::string>& names = findings.source->about().point_names;
  std::vector<std::string> unknown;
  for (size_t i = 0; i < names.size(); ++i) {
    if (findings.survey.unknown_points[i] > 0) {
      unknown.push_back(
          fmt::format("{} {}", names[i], text::count(findings.survey.unknown_points[i])));
    }
  }
  const int64_t without = findings.survey.without_points;
  return fmt::format(
      "{}, at {}; {}{}",
      names.size(),
      spread(findings.survey.points),
      unknown.empty() ? "all are known" : fmt::format("not known: {}", fmt::join(unknown, ", ")),
      without > 0 ? fmt::format("; {} samples have none", text::count(without)) : "");
}

std::string unusable_lines(const Survey& survey) {
  constexpr const char* kIndent = "\n            ";
  const int64_t more = survey.unusable - std::ssize(survey.first_unusable);
  return fmt::format("{} sample{}:{}{}{}",
                     text::count(survey.unusable),
                     survey.unusable == 1 ? "" : "s",
                     kIndent,
                     fmt::join(survey.first_unusable, kIndent),
                     more > 0 ? fmt::format("{}and {} more", kIndent, text::count(more)) : "");
}

/// Names come from files and folders: what would steer a terminal is shown as \xNN.
std::string without_control(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    shown += text::is_control(c) && c != '\n' ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return shown;
}

nlohmann::ordered_json same_or_null(const Extremes& range) {
  return range.least == range.most ? nlohmann::ordered_json(static_cast<int64_t>(range.most))
                                   : nlohmann::ordered_json();
}

nlohmann::ordered_json pair_of(const Extremes& range, double scale = 1) {
  return nlohmann::ordered_json::array({range.least * scale, range.most * scale});
}

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

std::string name_of(const datasets::About& about) {
  return about.packed_from.empty() ? about.set
                                   : fmt::format("{} of {}", about.set, about.packed_from);
}

std::vector<runs::Bar> class_bars(const Findings& findings) {
  const std::vector<std::string>& names = findings.source->about().classes;
  std::vector<runs::Bar> bars;
  for (size_t i = 0; i < findings.survey.per_class.size(); ++i) {
    bars.push_back({.name = i < names.size() ? names[i] : std::to_string(i),
                    .value = findings.survey.per_class[i]});
  }
  return bars;
}

std::string info_text(const Findings& findings, int columns, BarStyle style) {
  const About& about = findings.source->about();
  const Survey& survey = findings.survey;
  std::string text = fmt::format("{} in {}\n", name_of(about), about.path);
  const auto line = [&](std::string_view subject, const std::string& words) {
    text += fmt::format("  {:<9} {}\n", subject, words);
  };
  line("samples", samples_line(findings));
  if (about.missing > 0) {
    line("missing",
         fmt::format("{} samples of the index are not there", text::count(about.missing)));
  }
  if (survey.damaged > 0) {
    line("damaged",
         fmt::format("{} picture{}: {}",
                     text::count(survey.damaged),
                     survey.damaged == 1 ? "" : "s; the first",
                     survey.first_damage));
  }
  if (survey.unusable > 0) {
    line("unusable", unusable_lines(survey));
  }
  if (survey.samples > survey.damaged + survey.unusable) {
    line("pictures", pictures_line(survey));
    line("values", values_line(findings));
  }
  if (!about.point_names.empty()) {
    line("points", points_line(findings));
  }
  if (!survey.per_class.empty()) {
    line("classes", text::count(std::ssize(survey.per_class)));
    text += "\n" + bar_chart(class_bars(findings), columns, style);
  }
  return without_control(text);
}

nlohmann::ordered_json info_json(const Findings& findings) {
  const About& about = findings.source->about();
  const Survey& survey = findings.survey;
  nlohmann::ordered_json json{{"samples", survey.samples},
                              {"classes", survey.per_class.size()},
                              {"per_class", survey.per_class}};
  json["shape"] = {same_or_null(survey.height),
                   same_or_null(survey.width),
                   survey.channels.size() == 1 ? nlohmann::ordered_json(survey.channels[0])
                                               : nlohmann::ordered_json()};
  json["set"] = about.set;
  json["packed_from"] = about.packed_from;
  json["path"] = about.path;
  json["splits"] = nlohmann::ordered_json::object();
  for (const datasets::SplitRange& split : about.splits) {
    json["splits"][split.name] = split.count;
  }
  json["class_names"] = about.classes;
  json["height"] = pair_of(survey.height);
  json["width"] = pair_of(survey.width);
  json["values"] = pair_of(survey.pixels, scale_of(about));
  json["mean"] = nlohmann::ordered_json::array();
  json["std"] = nlohmann::ordered_json::array();
  for (const datasets::ChannelFigures& channel : survey.figures) {
    json["mean"].push_back(channel.mean);
    json["std"].push_back(channel.deviation);
  }
  json["pictures_decoded"] = survey.pictures;
  json["missing"] = about.missing;
  json["damaged"] = survey.damaged;
  json["unusable"] = survey.unusable;
  json["first_unusable"] = survey.first_unusable;
  json["point_names"] = about.point_names;
  json["points"] = pair_of(survey.points);
  json["unknown_points"] = survey.unknown_points;
  json["without_points"] = survey.without_points;
  return json;
}

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
