#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/runs/metrics_log.h"
#include "argosy/runs/picture_page.h"
#include "argosy/runs/run_config.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {

/// Near the end of every page, by which we know our own.
inline constexpr std::string_view kPageMark = "by Argosy</footer>";

/// The content of a page: the <body>, and the data that page.js draws. A page without data has no
/// script.
struct PageText {
  std::string title{};
  std::string body{};
  nlohmann::ordered_json data{};
  bool running = false;
};
/// Returns a whole HTML document. Adds to `data` the time at which it was written.
[[nodiscard]] std::string page_document(PageText page);

/// Returns the head of a page: name, state, times, machine and command.
[[nodiscard]] std::string header_part(const RunConfig& config, const std::string& name);
/// Returns the latest figures in large type.
[[nodiscard]] std::string tiles_part(const MetricsLog& log);
/// Returns the place of the charts, with its controls. Empty: there is nothing to draw.
[[nodiscard]] std::string charts_part(const MetricsLog& log);
/// Returns a table of what each rank, or each server, says about itself. Empty: they say nothing.
[[nodiscard]] std::string each_part(std::string_view title,
                                    const std::vector<nlohmann::ordered_json>& each);
/// Returns the place of the servers' charts, below their table. Empty: there are none.
[[nodiscard]] std::string servers_part(const MetricsLog& log,
                                       const std::vector<nlohmann::ordered_json>& servers);
/// Returns options, versions, host and environment.
[[nodiscard]] std::string config_part(const RunConfig& config);
/// A picture with its caption below.
struct FigureText {
  std::string png_base64{};  ///< empty: a gray square
  std::string caption{};
  PagePicture::Mark mark = PagePicture::Mark::kNone;
  std::string over{};  ///< SVG that lies over the picture
};
[[nodiscard]] std::string picture_figure(const FigureText& figure);
/// A part with pictures, and in words what was too large for it and why. Both may be empty.
struct SamplesPart {
  std::string html{};  ///< says it too
  std::string left_out{};
};
/// Returns the content of `folder`/samples: sheets of write_samples(), and PNG files. Empty: there
/// is none.
[[nodiscard]] SamplesPart samples_part(const std::string& folder);
/// Returns what page.js draws from `folder`/timeline*.json, or null if there is none.
[[nodiscard]] nlohmann::ordered_json timeline_json(const std::string& folder);
/// Returns the place of the timeline.
[[nodiscard]] std::string timeline_part(const nlohmann::ordered_json& timeline);

/// Returns {"a": {"b": 1}, "c": [1, 2]} as the pairs ("a.b", "1"), ("c", "[1,2]").
[[nodiscard]] std::vector<std::pair<std::string, std::string>> flattened(
    const nlohmann::ordered_json& object);
/// Returns a value with its unit: "12 GB" for names that end in _bytes, "37 %" for input_wait and
/// names that end in _share …
[[nodiscard]] std::string shown_value(std::string_view name, const nlohmann::ordered_json& value);

}  // namespace argosy::runs
