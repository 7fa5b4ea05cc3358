#pragma once

#include <span>

#include "argosy/train/core.h"
#include "argosy/train/step_figures.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// Puts this rank's sums of the loss, the logged figures and the metrics of the epoch so far among
/// its values in a checkpoint; a metric that has no state() is left out.
void put_sums(const Core& core, const EpochFigures& figures, nlohmann::ordered_json& rank_values);

/// Puts back the sums of one rank, with those of `gone` added: of ranks of the run before that are
/// there no more. The figures over all ranks are then what they were.
/// Errors: CheckpointError: other metrics; UsageError: of other options.
void restore_sums(Core& core,
                  EpochFigures& figures,
                  const nlohmann::ordered_json& rank_values,
                  std::span<const nlohmann::ordered_json> gone);

/// Metrics that a checkpoint cannot keep, and with `fewer_ranks` those that cannot take over what
/// ranks that are gone have counted, begin the epoch anew, on all ranks alike: rank 0 says which.
void reset_others(Core& core, bool fewer_ranks);

}  // namespace argosy::train::detail
