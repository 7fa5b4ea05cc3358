#include "argosy/runs/page_parts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "argosy/base/text.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page/page_assets.h"

namespace argosy::runs {
namespace {

using nlohmann::ordered_json;

std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string fact(std::string_view name, std::string_view value) {
  return value.empty() ? "" : fmt::format("<span>{} <b>{}</b></span>", name, escaped(value));
}

std::string rows(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) {
    text += fmt::format("<tr><td class=\"name\">{}</td><td class=\"mono\">{}</td></tr>\n",
                        escaped(name),
                        escaped(value));
  }
  return text;
}

std::string card(std::string_view title,
                 const std::vector<std::pair<std::string, std::string>>& pairs) {
  return pairs.empty() ? ""
                       : fmt::format(
                             "<div><h2>{}</h2><div class=\"card scroll\"><table>{}</table>"
                             "</div></div>\n",
                             title,
                             rows(pairs));
}

void flatten(const std::string& path,
             const ordered_json& value,
             std::vector<std::pair<std::string, std::string>>& pairs) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items()) {
      flatten(path.empty() ? key : path + "." + key, inner, pairs);
    }
  } else {
    pairs.emplace_back(path, value.is_string() ? value.get<std::string>() : dumped(value));
  }
}

std::string tile(std::string_view label,
                 const std::string& value,
                 std::string_view unit,
                 const std::string& below) {
  return fmt::format(
      "<div class=\"tile\"><div class=\"label\" title=\"{0}\">{0}</div><div class=\"value\">{1}"
      "<small>{2}</small></div><div class=\"best\">{3}</div></div>\n",
      escaped(label),
      value,
      escaped(unit),
      escaped(below));
}

std::string curve_tile(const MetricsLog& log, const NamedCurve& named) {
  const Figure figure = figure_of(named.name);
  const BoundedCurve& curve = named.curve;
  const std::string label =
      figure.place <= 1 ? fmt::format("{} ({})", figure.title, named.split) : figure.title;
  if (curve.empty()) {
    return tile(label, "–", "", "never a number");
  }
  std::string best;
  if (figure.better != 0) {
    const CurvePoint point = figure.better > 0 ? curve.highest() : curve.lowest();
    best = fmt::format("best {} at {} {}",
                       shown_number(point.y * figure.scale),
                       log.axis(),
                       shown_number(point.x));
  }
  return tile(
      label, shown_number(latest_of(curve, figure) * figure.scale), figure.short_unit, best);
}

}  // namespace

std::string page_document(PageText page) {
  std::string script;
  if (!page.data.is_null()) {
    page.data["running"] = page.running;
    page.data["written"] = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
    script = fmt::format(
        "<noscript><p class=\"note\">The curves are drawn by a script of this page: allow it to "
        "see "
        "them.</p></noscript>\n"
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n",
        script_json(dumped(page.data)),
        kPageJs);
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n{}<title>{}</title>\n<style>\n{}</style>\n</head>\n"
      "<body>\n<main>\n{}<footer><span id=\"age\"></span> {}\n</main>\n"
      "{}</body>\n</html>\n",
      page.running ? "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>\n" : "",
      escaped(page.title),
      kPageCss,
      page.body,
      kPageMark,
      script);
}

std::string header_part(const RunConfig& config, const std::string& name) {
  const RunState state = config.observed_state();
  std::string text = fmt::format(
      "<header><h1>{}</h1><span class=\"badge {}\">{}</span></header>\n<p class=\"facts\">",
      escaped(name),
      to_string(state),
      to_string(state));
  text += fact("started", text::utc_date(config.started));
  if (state != RunState::kKilled) {
    text += fact(state == RunState::kRunning ? "for" : "took",
                 text::duration(config.duration().count()));
  }
  text += fact("ranks", fmt::format("{}", config.ranks));
  text += fact("host", config.host.name);
  text += fact("seed", config.seed ? fmt::format("{}", *config.seed) : "");
  if (!config.sources.commit.empty()) {
    text += fact("commit",
                 fmt::format("{}{}",
                             config.sources.commit.substr(0, 12),
                             config.sources.dirty ? " with changes" : ""));
  }
  text += "</p>\n";
  if (!config.message.empty()) {
    text += fmt::format("<p class=\"message\">{}</p>\n", escaped(config.message));
  }
  for (const RunInterruption& interruption : config.interruptions) {
    text += fmt::format("<p class=\"message\">{}</p>\n", escaped(to_string(interruption)));
  }
  if (!config.command.empty()) {
    text += fmt::format("<pre class=\"command\">{}</pre>\n",
                        escaped(fmt::format("{}", fmt::join(config.command, " "))));
  }
  return text;
}

std::string tiles_part(const MetricsLog& log) {
  constexpr size_t kMostTiles = 12;
  const std::vector<ChartRun> runs{{.label = "", .log = &log}};
  std::string text;
  if (log.last_epoch() >= 0 || log.last_step() >= 0) {
    const bool epoch = log.last_epoch() >= 0;
    text += tile(epoch ? "Epoch" : "Step",
                 shown_number(epoch ? log.last_epoch() : log.last_step()),
                 "",
                 epoch && log.last_step() >= 0 ? "step " + shown_number(log.last_step()) : "");
  }
  size_t tiles = 0;
  for (const std::string& name : chart_names(runs)) {
    for (const NamedCurve& named : log.curves()) {
      if (named.name == name && tiles < kMostTiles) {
        text += curve_tile(log, named);
        ++tiles;
      }
    }
  }
  return text.empty() ? "" : "<div class=\"tiles\">\n" + text + "</div>\n";
}

std::string charts_part(const MetricsLog& log) {
  if (log.curves().empty()) {
    return "<p class=\"facts\">No figures yet.</p><div id=\"charts\"></div>\n";
  }
  return "<div class=\"bar\"><h2>Curves</h2><label>smoothing <input type=\"range\" id=\"smooth\" "
         "min=\"0\" max=\"0.98\" step=\"0.02\" value=\"0\"></label><label><input type=\"checkbox\" "
         "id=\"log\"> logarithmic</label></div>\n<div class=\"charts\" id=\"charts\"></div>\n";
}

std::string shown_value(std::string_view name, const ordered_json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_number()) {
    return value.is_null() ? "–" : dumped(value);
  }
  const auto number = value.get<double>();
  if (name.ends_with("_bytes")) {
    return text::bytes(number);
  }
  if (name == "input_wait" || name.ends_with("_wait") || name.ends_with("_share")) {
    return fmt::format("{:.1f} %", 100 * number);
  }
  return shown_number(number);
}

std::string each_part(std::string_view title, const std::vector<ordered_json>& each) {
  std::vector<std::string> columns;
  for (const ordered_json& one : each) {
    for (const auto& [key, value] : one.items()) {
      if (!value.is_structured() && std::ranges::find(columns, key) == columns.end() &&
          columns.size() < 32) {
        columns.push_back(key);
      }
    }
  }
  if (columns.empty()) {
    return "";
  }
  std::string head;
  std::string body;
  std::vector<double> most(columns.size(), 0);
  for (size_t c = 0; c < columns.size(); ++c) {
    bool numbers = false;
    for (const ordered_json& one : each) {
      const auto value = one.find(columns[c]);
      if (value != one.end() && value->is_number()) {
        numbers = true;
        most[c] = std::max(most[c], value->get<double>());
      }
    }
    std::string column = columns[c];
    std::ranges::replace(column, '_', ' ');
    head += fmt::format("<th{}>{}</th>", numbers ? " class=\"number\"" : "", escaped(column));
  }
  for (const ordered_json& one : each) {
    body += "<tr>";
    for (size_t c = 0; c < columns.size(); ++c) {
      const ordered_json value = one.value(columns[c], ordered_json());
      const bool number = value.is_number();
      std::string bar;
      // Equal bars show at a glance which rank is behind.
      if (number && columns[c].ends_with("_per_second") && most[c] > 0) {
        bar = fmt::format("<span class=\"share\" style=\"width:{:.0f}%\"></span>",
                          100 * std::clamp(value.get<double>() / most[c], 0.0, 1.0));
      }
      body += fmt::format("<td{}>{}{}</td>",
                          number ? " class=\"number\"" : "",
                          escaped(shown_value(columns[c], value)),
                          bar);
    }
    body += "</tr>\n";
  }
  return fmt::format(
      "<h2>{}</h2>\n<div class=\"card scroll\"><table><thead><tr>{}</tr></thead>\n<tbody>{}"
      "</tbody></table></div>\n",
      title,
      head,
      body);
}

std::string servers_part(const MetricsLog& log, const std::vector<ordered_json>& servers) {
  const std::string table = each_part("Servers", servers);
  return table.empty() || log.curves().empty()
             ? table
             : table + "<div class=\"charts\" id=\"server_charts\"></div>\n";
}

std::vector<std::pair<std::string, std::string>> flattened(const ordered_json& object) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!object.empty()) {
    flatten("", object, pairs);
  }
  return pairs;
}

std::string config_part(const RunConfig& config) {
  std::vector<std::pair<std::string, std::string>> place{
      {"host", config.host.name},
      {"system", config.host.system},
      {"processor", config.host.cpu},
      {"hardware threads",
       fmt::format("{} on {} cores", config.host.cores, config.host.physical_cores)},
      {"memory", text::bytes(static_cast<double>(config.host.memory_bytes))},
      {"folder", config.folder},
      {"commit", config.sources.commit + (config.sources.dirty ? " with changes" : "")},
      {"branch", config.sources.branch}};
  std::erase_if(place, [](const auto& pair) { return pair.second.empty(); });
  for (const auto& [name, version] : config.versions) {
    place.emplace_back(name, version);
  }
  return "<div class=\"columns\">\n" + card("Options", flattened(config.options)) +
         card("Machine and versions", place) +
         card("Environment", {config.environment.begin(), config.environment.end()}) + "</div>\n";
}

}  // namespace argosy::runs
