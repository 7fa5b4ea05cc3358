#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/engine/state_dict.h"

#include <nlohmann/json.hpp>

namespace argosy::checkpoint {

/// All that a training needs to go on: what a Saver writes and a Checkpoint gives back.
///
///     Snapshot now{.parts = {{"model", engine::state_dict(net)}, {"optimizer", state}},
///                  .values = {{"best", 0.71}},
///                  .rank_tensors = {{"random", generator_state}},
///                  .rank_values = {{"sample", 4096}},
///                  .step = 120};
///
/// Names of parts are letters, digits, "_" and "-", not "state", "manifest" nor "rank" and a
/// number; "model" is what commands and Python look for. Tensors of the optimizer are named
/// "<parameter>/<state>". Values may hold NaN and infinities.
struct Snapshot {
  /// The same on all ranks, or (sharded) of each rank its own names; what several have must be
  /// equal.
  std::vector<std::pair<std::string, engine::StateDict>> parts{};
  nlohmann::ordered_json values = nlohmann::ordered_json::object();  ///< rank 0's count
  engine::StateDict rank_tensors{};                                  ///< of this rank
  nlohmann::ordered_json rank_values = nlohmann::ordered_json::object();
  int64_t step = 0;   ///< of the optimizer, in the whole training
  int64_t epoch = 0;  ///< the one that is going on
  /// By which keep_best judges; without one it is not among the best.
  std::optional<double> score{};

  /// nullptr when there is none.
  [[nodiscard]] const engine::StateDict* find(std::string_view part) const;
};

}  // namespace argosy::checkpoint
