#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/checkpoint/snapshot.h"
#include "argosy/comm/group.h"

// Internal to the room: which rank writes which tensor.
namespace argosy::checkpoint {

/// A tensor as all ranks know it.
struct ShardPlan {
  /// Of each part in order, this rank's share.
  std::vector<std::pair<std::string, engine::StateDict>> own{};
  std::vector<std::string> parts{};
  /// Part and name of every tensor, in the order in which a reader finds them.
  std::vector<std::pair<std::string, std::string>> order{};
};

/// Shares the tensors out: each is written once, by a rank that has it, so that all write about as
/// many bytes.
///
/// Collective over `group`, also for a rank whose snapshot is bad: `error` (empty: none) goes to
/// all. Errors: CheckpointError, on all ranks alike: a rank's error; a name that stands for
/// different shapes or types.
[[nodiscard]] ShardPlan plan_shards(const Snapshot& snapshot,
                                    const std::string& error,
                                    const comm::Group& group);

}  // namespace argosy::checkpoint
