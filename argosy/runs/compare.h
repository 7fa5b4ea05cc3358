#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/runs/metrics_log.h"
#include "argosy/runs/run_config.h"

namespace argosy::runs {

/// A value that differs between two runs. nullopt: the run does not have it.
struct Difference {
  std::string name{};  ///< "options.optimizer.lr"
  std::optional<std::string> a{};
  std::optional<std::string> b{};
};

/// Returns the differences that can make two runs end differently: options, seed, ranks, versions,
/// machine, environment, sources, command. It leaves out when they ran and how they ended.
[[nodiscard]] std::vector<Difference> differences(const RunConfig& a, const RunConfig& b);

/// A figure that at least one of two runs has. nullptr: this run does not have it.
struct ComparedFigure {
  const NamedCurve* a = nullptr;
  const NamedCurve* b = nullptr;
};
/// Returns the figures of both runs in the order of the charts.
[[nodiscard]] std::vector<ComparedFigure> compared_figures(const MetricsLog& a,
                                                           const MetricsLog& b);

}  // namespace argosy::runs
