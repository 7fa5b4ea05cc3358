#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argosy/engine/state_dict.h"

#include <nlohmann/json.hpp>

namespace argosy::checkpoint {

/// Everything that a training needs to resume. A Saver writes it, and a Checkpoint gives it back.
///
///     Snapshot now{.parts = {{"model", engine::state_dict(net)}, {"optimizer", state}},
///                  .values = {{"best", 0.71}},
///                  .rank_tensors = {{"random", generator_state}},
///                  .rank_values = {{"sample", 4096}},
///                  .step = 120};
///
/// Names of parts have letters, digits, "_" and "-", and are not "state", "manifest", or "rank"
/// with a number. Commands and Python look for "model". Tensors of the optimizer are named
/// "<parameter>/<state>". Values may hold NaN and infinities.
struct Snapshot {
  /// Equal on all ranks; if sharded, each rank may have only some of the names.
  std::vector<std::pair<std::string, engine::StateDict>> parts{};
  /// Part and name of those that each rank has its own of: rank 0's are in the part.
  std::set<std::pair<std::string, std::string>> of_rank_0{};
  nlohmann::ordered_json values = nlohmann::ordered_json::object();  ///< those of rank 0 are saved
  engine::StateDict rank_tensors{};                                  ///< of this rank
  nlohmann::ordered_json rank_values = nlohmann::ordered_json::object();
  int64_t step = 0;   ///< steps of the optimizer in the whole training
  int64_t epoch = 0;  ///< the running epoch
  /// What keep_best compares. Without a score, the checkpoint is not among the best.
  std::optional<double> score{};

  /// Returns nullptr if there is no such part.
  [[nodiscard]] const engine::StateDict* find(std::string_view part) const;
};

}  // namespace argosy::checkpoint
