#pragma once

#include <span>
#include <string>
#include <vector>

#include "argosy/runs/metrics_log.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {

/// The name, unit and meaning of a figure.
struct Figure {
  std::string title{};       ///< "Learning rate"
  std::string unit{};        ///< "images/s"; empty: none
  std::string short_unit{};  ///< after a value: "%"
  double scale = 1;          ///< factor that brings values into that unit
  int better = 0;            ///< +1: higher is better, -1: lower, 0: neither
  int place = 1;             ///< order in charts: losses, then metrics (1), then rates
};

/// Returns the figure of a name that trainers use: "loss", "lr", "images_per_second", "input_wait"
/// … Any other name is its own title.
[[nodiscard]] Figure figure_of(const std::string& name);

/// Returns the end of a curve, which must not be empty. For a rate it returns the mean of the
/// curve's latest piece, because rates jump from step to step.
[[nodiscard]] double latest_of(const BoundedCurve& curve, const Figure& figure);

/// A run that charts show.
struct ChartRun {
  std::string label{};
  const MetricsLog* log = nullptr;
};

/// Returns what page.js draws: one chart for each name of a curve, with one curve for each run and
/// split.
[[nodiscard]] nlohmann::ordered_json charts_json(std::span<const ChartRun> runs);

/// Returns the curves' names in the order of the charts.
[[nodiscard]] std::vector<std::string> chart_names(std::span<const ChartRun> runs);

}  // namespace argosy::runs
