#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/runs/metrics_log.h"
#include "argosy/runs/run_config.h"

namespace argosy::runs {

/// Something that two runs say differently; nullopt: one does not say it.
struct Difference {
  std::string name{};  ///< "options.optimizer.lr"
  std::optional<std::string> a{};
  std::optional<std::string> b{};
};

/// What can make two runs come out differently: options, seed, ranks, versions, machine,
/// environment, sources, command. Not when they ran, and how they ended.
[[nodiscard]] std::vector<Difference> differences(const RunConfig& a, const RunConfig& b);

/// A figure that either run has; nullptr: the other one.
struct ComparedFigure {
  const NamedCurve* a = nullptr;
  const NamedCurve* b = nullptr;
};
/// In the order of the charts.
[[nodiscard]] std::vector<ComparedFigure> compared_figures(const MetricsLog& a,
                                                           const MetricsLog& b);

}  // namespace argosy::runs
