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

/// The frame of a page: what stands in <body>, and what page.js draws. A page without data has no
/// script.
struct PageText {
  std::string title{};
  std::string body{};
  nlohmann::ordered_json data{};
  bool running = false;
};
/// A whole HTML document. Adds to `data` when it was written.
[[nodiscard]] std::string page_document(PageText page);

/// Name, state, when, where, the command.
[[nodiscard]] std::string header_part(const RunConfig& config, const std::string& name);
/// The latest figures, large.
[[nodiscard]] std::string tiles_part(const MetricsLog& log);
/// The place of the charts, with its controls. Empty where there is nothing to draw.
[[nodiscard]] std::string charts_part(const MetricsLog& log);
/// What the ranks say of themselves. Empty where they say nothing.
[[nodiscard]] std::string ranks_part(const std::vector<nlohmann::ordered_json>& ranks);
/// Options, versions, host, environment.
[[nodiscard]] std::string config_part(const RunConfig& config);
/// A picture below which its caption stands.
struct FigureText {
  std::string png_base64{};  ///< empty: a gray square
  std::string caption{};
  PagePicture::Mark mark = PagePicture::Mark::kNone;
  std::string over{};  ///< SVG that lies over the picture
};
[[nodiscard]] std::string picture_figure(const FigureText& figure);
/// What lies in `folder`/samples: sheets of write_samples(), and PNG files. Empty where nothing
/// does.
[[nodiscard]] std::string samples_part(const std::string& folder);
/// What page.js draws of `folder`/timeline*.json; null: there is none.
[[nodiscard]] nlohmann::ordered_json timeline_json(const std::string& folder);
/// Its place.
[[nodiscard]] std::string timeline_part(const nlohmann::ordered_json& timeline);

/// {"a": {"b": 1}, "c": [1, 2]} as pairs ("a.b", "1"), ("c", "[1,2]").
[[nodiscard]] std::vector<std::pair<std::string, std::string>> flattened(
    const nlohmann::ordered_json& object);
/// "12 GB" for names that end in _bytes, "37 %" for input_wait and names that end in _share …
[[nodiscard]] std::string shown_value(std::string_view name, const nlohmann::ordered_json& value);

}  // namespace argosy::runs
