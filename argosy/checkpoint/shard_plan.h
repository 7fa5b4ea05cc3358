#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/checkpoint/snapshot.h"
#include "argosy/comm/group.h"

// Internal to the room: which rank writes which tensor.
namespace argosy::checkpoint {

/// The tensors that each rank writes.
struct ShardPlan {
  /// For each part in order, this rank's share.
  std::vector<std::pair<std::string, engine::StateDict>> own{};
  std::vector<std::string> parts{};
  /// Part and name of every tensor, in a reader's order.
  std::vector<std::pair<std::string, std::string>> order{};
};

/// Divides the tensors among the ranks. Each tensor, or part of one, is written once, by a rank
/// that has it, and all ranks write about equally many bytes. What all ranks have whole is rank
/// 0's, unless `shares_wholes`.
///
/// Collective over `group`, also for a rank with a bad snapshot: `error` (empty: none) goes to all
/// ranks. Errors: CheckpointError, on all ranks alike, for a rank's error or for a name with
/// different shapes or types, or with elements that no rank has.
[[nodiscard]] ShardPlan plan_shards(const Snapshot& snapshot,
                                    const std::string& error,
                                    const comm::Group& group,
                                    bool shares_wholes);

}  // namespace argosy::checkpoint
