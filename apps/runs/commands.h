#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argosy/runs/metrics_log.h"
#include "argosy/runs/run_folder.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {

// One function for each word after `argosy runs`. Each returns the exit code.
[[nodiscard]] int run_ls(const std::vector<std::string>& args);
[[nodiscard]] int run_show(const std::vector<std::string>& args);
[[nodiscard]] int run_compare(const std::vector<std::string>& args);

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
