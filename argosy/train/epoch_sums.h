#pragma once

#include <span>

#include "argosy/train/core.h"
#include "argosy/train/step_figures.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// Puts this rank's sums of the epoch so far (loss, logged figures, metrics) among its values in a
/// checkpoint. A metric without state() is left out.
void put_sums(const Core& core, const EpochFigures& figures, nlohmann::ordered_json& rank_values);

/// Restores the sums of one rank and adds those of `gone`, the ranks of the former run that no
/// longer exist. The figures over all ranks are then what they were.
/// Errors: CheckpointError for other metrics; UsageError for a metric with other options.
void restore_sums(Core& core,
                  EpochFigures& figures,
                  const nlohmann::ordered_json& rank_values,
                  std::span<const nlohmann::ordered_json> gone);

/// Resets the metrics that a checkpoint cannot keep and, with `fewer_ranks`, those that cannot take
/// over the counts of ranks that no longer exist. They then count the epoch from here, on all ranks
/// alike. Rank 0 logs which they are.
void reset_others(Core& core, bool fewer_ranks);

}  // namespace argosy::train::detail
