#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "argosy/base/text.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page_parts.h"

#include "apps/runs/commands.h"
#include "apps/runs/report.h"

namespace argosy::runs {
namespace {

constexpr size_t kSparkColumns = 32;

std::string line(std::string_view name, std::string_view value) {
  return value.empty() ? "" : fmt::format("{:<9}{}\n", name, text::printable(value));
}

std::string head(const Run& run) {
  const RunConfig& config = run.config;
  const RunState state = config.observed_state();
  std::string text = line("run", run.name);
  text += line(
      "state",
      state == RunState::kKilled
          ? "killed: it says it runs, and its process is gone"
          : fmt::format("{}, {}", to_string(state), text::duration(config.duration().count())));
  text += line("message", config.message);
  for (const runs::RunInterruption& interruption : config.interruptions) {
    text += line("before", to_string(interruption));
  }
  text += line("started", text::utc_date(config.started));
  text += line("ranks", fmt::format("{} (host {})", config.ranks, config.host.name));
  text += line("command", fmt::format("{}", fmt::join(config.command, " ")));
  text += line("seed", config.seed ? fmt::format("{}", *config.seed) : "");
  text += line("commit", config.sources.commit + (config.sources.dirty ? " with changes" : ""));
  return text + line("page", run.folder + "/index.html");
}

std::string figures(const MetricsLog& log) {
  const std::vector<ChartRun> runs{{.label = "", .log = &log}};
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : chart_names(runs)) {
    for (const NamedCurve& named : log.curves()) {
      if (named.name == name && !named.curve.empty()) {
        const double last = latest_of(named.curve, figure_of(name)) * figure_of(name).scale;
        rows.push_back({figure_label(named),
                        shown_number(last),
                        best_of(named),
                        sparkline(named.curve, kSparkColumns, spark_style_of(STDOUT_FILENO))});
      }
    }
  }
  return rows.empty() ? "" : "\n" + text::table({"figure", "last", "best", "curve"}, rows);
}

std::string pairs(std::string_view title,
                  const std::vector<std::pair<std::string, std::string>>& all) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : all) {
    rows.push_back({text::printable(name), text::printable(value)});
  }
  return rows.empty() ? "" : "\n" + text::table({std::string(title), "value"}, rows);
}

/// A row for each rank, or each server.
std::string table_of(const std::vector<nlohmann::ordered_json>& ranks) {
  std::vector<std::string> columns;
  for (const nlohmann::ordered_json& rank : ranks) {
    for (const auto& [key, value] : rank.items()) {
      if (!value.is_structured() && std::ranges::find(columns, key) == columns.end()) {
        columns.push_back(key);
      }
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const nlohmann::ordered_json& rank : ranks) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const auto value = rank.find(column);
      cells.push_back(value == rank.end() ? "" : text::printable(shown_value(column, *value)));
    }
    rows.push_back(std::move(cells));
  }
  std::ranges::transform(columns, columns.begin(), text::printable);
  return columns.empty() ? "" : "\n" + text::table(columns, rows);
}

}  // namespace

int run_show(const std::vector<std::string>& args) {
  std::string name;
  std::string folder = "runs";
  bool json = false;
  if (program::parse_or_help(
          {.what = "Show one run: configuration, figures, curves, ranks.\n"
                   "Exit codes: 0 done, 1 it cannot be read, 2 wrong usage.",
           .name = "argosy runs show",
           .end = "Example: argosy runs show cifar10"},
          {{"RUN",
            "",
            "A name that argosy runs ls shows, or a run's folder",
            &name,
            {.required = true}},
           {"--dir", "FOLDER", "Folder of the runs", &folder},
           program::json_option(&json, "Print run.json and the figures as JSON")},
          args)) {
    return 0;
  }
  const ReadRun read = read_whole(find_run(name, folder));
  const std::vector<nlohmann::ordered_json> ranks = read_rank_files(read.run.folder);
  const std::vector<nlohmann::ordered_json> servers = read_servers_file(read.run.folder);
  if (json) {
    program::print_json({{"folder", read.run.folder},
                         {"state", to_string(read.run.config.observed_state())},
                         {"config", to_json(read.run.config)},
                         {"figures", figures_json(read.log)},
                         {"ranks", ranks},
                         {"servers", servers}});
    return 0;
  }
  const RunConfig& config = read.run.config;
  fmt::print("{}{}{}{}{}{}{}",
             head(read.run),
             figures(read.log),
             table_of(ranks),
             table_of(servers),
             pairs("option", flattened(config.options)),
             pairs("version", {config.versions.begin(), config.versions.end()}),
             pairs("environment", {config.environment.begin(), config.environment.end()}));
  if (read.log.bad_lines() > 0) {
    fmt::print("\n{} lines of metrics.jsonl could not be read.\n", read.log.bad_lines());
  }
  return 0;
}

}  // namespace argosy::runs
