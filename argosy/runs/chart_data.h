#pragma once

#include <span>
#include <string>
#include <vector>

#include "argosy/runs/metrics_log.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {

/// How a figure is called, counted and judged.
struct Figure {
  std::string title{};       ///< "Learning rate"
  std::string unit{};        ///< "images/s"; empty: none
  std::string short_unit{};  ///< behind a value: "%"
  double scale = 1;          ///< what values are multiplied with to be in that unit
  int better = 0;            ///< +1: higher is better, -1: lower, 0: neither
  int place = 1;             ///< losses before metrics (1) before rates
};

/// By the names that trainers use: "loss", "lr", "images_per_second", "input_wait" …; other names
/// as they are.
[[nodiscard]] Figure figure_of(const std::string& name);

/// The end of a curve that is not empty. A rate jumps from step to step: the latest piece of its
/// curve says more than the last point.
[[nodiscard]] double latest_of(const Curve& curve, const Figure& figure);

/// A run in charts.
struct ChartRun {
  std::string label{};
  const MetricsLog* log = nullptr;
};

/// What page.js draws: one chart for each name of a curve, one curve in it for each run and split.
[[nodiscard]] nlohmann::ordered_json charts_json(std::span<const ChartRun> runs);

/// The curves' names in the order of the charts.
[[nodiscard]] std::vector<std::string> chart_names(std::span<const ChartRun> runs);

}  // namespace argosy::runs
