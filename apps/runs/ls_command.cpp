#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "argosy/base/text.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/html.h"

#include "apps/runs/commands.h"
#include "apps/runs/report.h"

namespace argosy::runs {
namespace {

/// Of evaluation, or else of training.
const NamedCurve* telling_curve(const MetricsLog& log, int place) {
  for (const std::string_view split : {"eval", "test", "val", "train"}) {
    for (const NamedCurve& named : log.curves()) {
      if (named.split == split && figure_of(named.name).place == place && !named.curve.empty()) {
        return &named;
      }
    }
  }
  return nullptr;
}

std::string shown_last(const NamedCurve* named) {
  return named == nullptr ? "" : shown_number(named->curve.last().y * figure_of(named->name).scale);
}

std::vector<std::string> row_of(const ReadRun& read) {
  const RunConfig& config = read.run.config;
  const auto started =
      std::chrono::floor<std::chrono::seconds>(config.started.time_since_epoch()).count();
  const RunState state = config.observed_state();
  const NamedCurve* metric = telling_curve(read.log, 1);
  const double at = read.log.last_step() >= 0 ? read.log.last_step() : read.log.last_epoch();
  return {text::printable(read.run.name),
          to_string(state),
          fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(started)),
          state == RunState::kKilled ? "" : text::duration(config.duration().count()),
          fmt::format("{}", config.ranks),
          at < 0 ? "" : fmt::format("{:.0f}", at),
          shown_last(telling_curve(read.log, 0)),
          metric == nullptr ? "" : fmt::format("{} {}", shown_last(metric), figure_label(*metric))};
}

nlohmann::ordered_json json_of(const ReadRun& read) {
  const RunConfig& config = read.run.config;
  const nlohmann::ordered_json all = to_json(config);
  return {{"name", read.run.name},
          {"folder", read.run.folder},
          {"state", to_string(config.observed_state())},
          {"started", all["started"]},
          {"ended", all["ended"]},
          {"seconds", config.duration().count()},
          {"ranks", config.ranks},
          {"figures", figures_json(read.log)}};
}

}  // namespace

int run_ls(const std::vector<std::string>& args) {
  std::string folder = "runs";
  bool json = false;
  if (program::parse_or_help({.what = "List the runs, the newest first. Times are UTC.\n"
                                      "Exit codes: 0 done, 1 a run cannot be read, 2 wrong usage.",
                              .name = "argosy runs ls",
                              .end = "Example: argosy runs ls experiments/runs"},
                             {{"DIR", "", "Folder of the runs", &folder},
                              {"--dir", "FOLDER", "The same", &folder},
                              program::json_option(&json)},
                             args)) {
    return 0;
  }
  FoundRuns found = list_runs(folder);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows;
  for (Run& run : found.runs) {
    const ReadRun read = read_whole(std::move(run));
    if (json) {
      all.push_back(json_of(read));
    } else {
      rows.push_back(row_of(read));
    }
  }
  if (json) {
    program::print_json(all);
  } else if (!rows.empty()) {
    fmt::print(
        "{}",
        text::table({"run", "state", "started", "took", "ranks", "step", "loss", "metric"}, rows));
  } else if (found.broken.empty()) {
    fmt::print("No runs in {}.\n", text::printable(folder));
  }
  for (const std::string& message : found.broken) {
    fmt::print(stderr, "{}\n", text::printable(message));
  }
  return found.broken.empty() ? 0 : 1;
}

}  // namespace argosy::runs
