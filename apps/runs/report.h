#pragma once

#include <string>
#include <string_view>

#include "argosy/runs/metrics_log.h"
#include "argosy/runs/run_folder.h"

#include <nlohmann/json.hpp>

// What the commands share: figures of a run in text and JSON.
namespace argosy::runs {

/// A run and its figures.
struct ReadRun {
  Run run{};
  MetricsLog log;
};
[[nodiscard]] ReadRun read_whole(Run run);

/// Returns {"train": {"loss": {"last": 0.1, "lowest": 0.09, "highest": 2.3}}}.
[[nodiscard]] nlohmann::ordered_json figures_json(const MetricsLog& log);

/// Returns "Loss (train)".
[[nodiscard]] std::string figure_label(const NamedCurve& named);
/// Returns its best value. "": no value is better than others.
[[nodiscard]] std::string best_of(const NamedCurve& named);

/// How sparkline() draws a curve in `columns` characters, from low to high: by blocks, or in plain
/// ASCII.
enum class SparkStyle { kBlocks, kPlain };
[[nodiscard]] std::string sparkline(const BoundedCurve& curve, size_t columns, SparkStyle style);
/// Returns kBlocks for a terminal whose locale says UTF-8.
[[nodiscard]] SparkStyle spark_style_of(int fd);

}  // namespace argosy::runs
