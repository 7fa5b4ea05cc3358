#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argosy/runs/metrics_log.h"
#include "argosy/runs/run_folder.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {

// One for each word after `argosy runs`; each returns the exit code.
[[nodiscard]] int run_ls(const std::vector<std::string>& args);
[[nodiscard]] int run_show(const std::vector<std::string>& args);
[[nodiscard]] int run_compare(const std::vector<std::string>& args);

/// "cifar  finished": its figures are read too.
struct ReadRun {
  Run run{};
  MetricsLog log;
};
[[nodiscard]] ReadRun read_whole(Run run);

/// {"train": {"loss": {"last": 0.1, "lowest": 0.09, "highest": 2.3}}}.
[[nodiscard]] nlohmann::ordered_json figures_json(const MetricsLog& log);

/// "Loss (train)".
[[nodiscard]] std::string figure_label(const NamedCurve& named);
/// Its best value, "" where none is better than others.
[[nodiscard]] std::string best_of(const NamedCurve& named);

/// A curve in `columns` characters, from low to high: blocks, or plain ASCII.
enum class SparkStyle { kBlocks, kPlain };
[[nodiscard]] std::string sparkline(const Curve& curve, size_t columns, SparkStyle style);
/// kBlocks for a terminal that says it can UTF-8.
[[nodiscard]] SparkStyle spark_style_of(int fd);

}  // namespace argosy::runs
