#include "argosy/train/epoch_sums.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/log.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

using nlohmann::ordered_json;

struct Sums {
  std::array<metrics::State, 2> loss;
  ordered_json logged{};  // none in checkpoints of before it was kept
  std::vector<std::optional<metrics::State>> metrics{};  // of those that have one
};

Sums sums_in(const ordered_json& rank_values, std::size_t metrics) {
  try {
    Sums sums{.loss = rank_values.at("loss").get<std::array<metrics::State, 2>>(),
              .logged = rank_values.value("logged", ordered_json::array())};
    for (const ordered_json& state : rank_values.at("metrics")) {
      sums.metrics.push_back(state.is_null() ? std::nullopt
                                             : std::optional(state.get<metrics::State>()));
    }
    if (sums.metrics.size() != metrics) {
      throw CheckpointError("train.resume",
                            "the checkpoint is of " + std::to_string(sums.metrics.size()) +
                                " metrics, the model is prepared with " + std::to_string(metrics),
                            {.key = "metrics"});
    }
    return sums;
  } catch (const ordered_json::exception& error) {
    throw CheckpointError(
        "train.resume",
        "the checkpoint's values are not the trainer's: " + std::string(error.what()),
        {.key = "metrics"});
  }
}

}  // namespace

void put_sums(const Core& core, const EpochFigures& figures, ordered_json& rank_values) {
  rank_values["loss"] = figures.loss.state();
  rank_values["logged"] = figures.logged.state();
  ordered_json metrics = ordered_json::array();
  for (const metrics::AnyMetric& metric : core.metrics) {
    metrics.push_back(metric.keeps() ? ordered_json(metric.state()) : ordered_json());
  }
  rank_values["metrics"] = std::move(metrics);
}

void restore_sums(Core& core,
                  EpochFigures& figures,
                  const ordered_json& rank_values,
                  std::span<const ordered_json> gone) {
  const Sums own = sums_in(rank_values, core.metrics.size());
  figures.loss.load_state(own.loss);
  figures.logged = {};
  figures.logged.merge_state(own.logged);
  for (std::size_t i = 0; i < core.metrics.size(); ++i) {
    if (own.metrics[i].has_value() && core.metrics[i].keeps()) {
      core.metrics[i].load_state(*own.metrics[i]);
    }
  }
  for (const ordered_json& values : gone) {
    const Sums more = sums_in(values, core.metrics.size());
    figures.loss.merge_state(more.loss);
    figures.logged.merge_state(more.logged);
    for (std::size_t i = 0; i < core.metrics.size(); ++i) {
      if (more.metrics[i].has_value() && core.metrics[i].merges()) {
        core.metrics[i].merge_state(*more.metrics[i]);
      }
    }
  }
}

void reset_others(Core& core, bool fewer_ranks) {
  for (metrics::AnyMetric& metric : core.metrics) {
    if (metric.keeps() && (metric.merges() || !fewer_ranks)) {
      continue;
    }
    metric.reset();
    if (core.group.rank() == 0) {
      const std::vector<std::string> names = metric.names();
      log::warn("[train.resume] the metric \"{}\" begins the epoch anew: {}",
                names.empty() ? "without a name" : names.front(),
                metric.keeps()
                    ? "there are fewer ranks than before, and it has no merge_state() to take over "
                      "what those that are gone have counted"
                    : "it has no state() and load_state() to keep in a checkpoint what was counted "
                      "before");
    }
  }
}

}  // namespace argosy::train::detail
