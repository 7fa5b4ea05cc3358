#include <fmt/format.h>

#include <vector>

#include "argosy/base/text.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/compare.h"
#include "argosy/runs/files.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page_parts.h"

#include "apps/runs/commands.h"
#include "apps/runs/report.h"

namespace argosy::runs {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

bool has_points(const NamedCurve* named) {
  return named != nullptr && !named->curve.empty();
}

std::string last_of(const NamedCurve* named) {
  if (!has_points(named)) {
    return "-";
  }
  const Figure figure = figure_of(named->name);
  return shown_number(latest_of(named->curve, figure) * figure.scale);
}

std::string best_or_dash(const NamedCurve* named) {
  return has_points(named) ? best_of(*named) : "";
}

/// "+0.0123 (+1.4 %)".
std::string change(const ComparedFigure& pair) {
  if (!has_points(pair.a) || !has_points(pair.b)) {
    return "";
  }
  const Figure figure = figure_of(pair.a->name);
  const double a = latest_of(pair.a->curve, figure) * figure.scale;
  const double b = latest_of(pair.b->curve, figure) * figure.scale;
  if (a == b) {
    return "equal";
  }
  const std::string sign = b > a ? "+" : "";
  const std::string share = a == 0 ? "" : fmt::format(" ({:+.1f} %)", 100 * (b - a) / std::abs(a));
  return sign + shown_number(b - a) + share;
}

Rows figure_rows(const ReadRun& a, const ReadRun& b) {
  Rows rows;
  for (const ComparedFigure& pair : compared_figures(a.log, b.log)) {
    const NamedCurve& named = pair.a != nullptr ? *pair.a : *pair.b;
    rows.push_back({figure_label(named),
                    last_of(pair.a),
                    last_of(pair.b),
                    change(pair),
                    best_or_dash(pair.a),
                    best_or_dash(pair.b)});
  }
  return rows;
}

Rows difference_rows(const std::vector<Difference>& all) {
  Rows rows;
  for (const Difference& one : all) {
    rows.push_back({one.name, one.a.value_or("-"), one.b.value_or("-")});
  }
  return rows;
}

std::string html_table(const std::vector<std::string>& head, const Rows& rows) {
  std::string text = "<div class=\"card scroll\"><table><thead><tr>";
  for (const std::string& cell : head) {
    text += fmt::format("<th>{}</th>", escaped(cell));
  }
  text += "</tr></thead>\n<tbody>";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      text += fmt::format("<td class=\"{}\">{}</td>", i == 0 ? "name" : "mono", escaped(row[i]));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string overlay(const ReadRun& a, const ReadRun& b, const std::vector<Difference>& settings) {
  const std::string& first = a.run.name;
  const std::string& second = b.run.name;
  const std::vector<ChartRun> runs{{.label = first, .log = &a.log},
                                   {.label = second, .log = &b.log}};
  const std::string title = fmt::format("{} and {}", first, second);
  std::string body = fmt::format("<header><h1>{}</h1></header>\n", escaped(title));
  body += charts_part(a.log.curves().empty() ? b.log : a.log);
  body += "<h2>Results</h2>\n" +
          html_table({"figure", first, second, "change", "best of " + first, "best of " + second},
                     figure_rows(a, b));
  body += "<h2>What differs</h2>\n";
  body += settings.empty() ? "<p class=\"facts\">Nothing.</p>\n"
                           : html_table({"setting", first, second}, difference_rows(settings));
  return page_document({.title = title,
                        .body = body,
                        .data = {{"charts", charts_json(runs)}, {"timeline", nullptr}},
                        .running = false});
}

ordered_json text_or_null(const std::optional<std::string>& text) {
  return text ? ordered_json(*text) : ordered_json(nullptr);
}

ordered_json comparison_json(const ReadRun& a,
                             const ReadRun& b,
                             const std::vector<Difference>& settings) {
  ordered_json changed = ordered_json::object();
  for (const Difference& one : settings) {
    changed[one.name] = ordered_json::array({text_or_null(one.a), text_or_null(one.b)});
  }
  return {{"runs", {a.run.folder, b.run.folder}},
          {"differences", std::move(changed)},
          {"figures", ordered_json::array({figures_json(a.log), figures_json(b.log)})}};
}

void print_rows(const std::vector<std::string>& head, Rows rows) {
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) {
      constexpr size_t kMostOfACell = 60;
      cell = text::printable(cell.size() > kMostOfACell ? cell.substr(0, kMostOfACell - 1) + "~"
                                                        : cell);
    }
  }
  fmt::print("{}", text::table(head, rows));
}

}  // namespace

int run_compare(const std::vector<std::string>& args) {
  std::string first;
  std::string second;
  std::string folder = "runs";
  std::string page;
  bool json = false;
  if (program::parse_or_help(
          {.what = "Say how two runs differ, in configuration and results.\n"
                   "Exit codes: 0 done, 1 one cannot be read, 2 wrong usage.",
           .name = "argosy runs compare",
           .end = "Example: argosy runs compare lr_0.1 lr_0.01 --html compared.html"},
          {{"RUN",
            "",
            "A name that argosy runs ls shows, or a run's folder",
            &first,
            {.required = true}},
           {"OTHER_RUN", "", "The one beside it", &second, {.required = true}},
           {"--dir", "FOLDER", "Folder of the runs", &folder},
           {"--html", "FILE", "Write a page with both runs' curves over each other", &page},
           program::json_option(&json)},
          args)) {
    return 0;
  }
  const ReadRun a = read_whole(find_run(first, folder));
  const ReadRun b = read_whole(find_run(second, folder));
  const std::vector<Difference> settings = differences(a.run.config, b.run.config);
  if (!page.empty()) {
    replace_file(page, overlay(a, b, settings));
  }
  if (json) {
    program::print_json(comparison_json(a, b, settings));
    return 0;
  }
  if (const Rows rows = figure_rows(a, b); !rows.empty()) {
    print_rows({"figure", first, second, "change", "best " + first, "best " + second}, rows);
    fmt::print("\n");
  }
  if (settings.empty()) {
    fmt::print("The same configuration.\n");
  } else {
    print_rows({"differs", first, second}, difference_rows(settings));
  }
  if (!page.empty()) {
    fmt::print("\nCurves: {}\n", page);
  }
  return 0;
}

}  // namespace argosy::runs
