#include "argosy/fleet/hybrid.h"

#include <string>

namespace argosy::fleet {

std::vector<parallel::MeshAxis> mesh_axes(const DistributedStrategy& strategy) {
  const auto degree = [&](const std::string& axis) -> int64_t {
    for (const std::string& name : {axis, axis + "_degree"}) {
      if (const auto found = strategy.hybrid_configs.find(name);
          found != strategy.hybrid_configs.end()) {
        return found->second;
      }
    }
    // The whole job shards where sharding is on and nobody says how many ranks do.
    return axis == "sharding" && strategy.sharding ? -1 : axis == "dp" ? 0 : 1;
  };
  std::vector<parallel::MeshAxis> axes;
  bool open = false;
  for (const std::string& axis : strategy.hybrid_order) {
    axes.push_back({.name = axis, .size = degree(axis)});
    open = open || axes.back().size == -1;
  }
  for (parallel::MeshAxis& axis : axes) {
    axis.size = axis.size != 0 ? axis.size : open ? 1 : -1;
  }
  return axes;
}

ParallelMode HybridCommunicateGroup::get_parallel_mode() const {
  return get_pipe_parallel_world_size() > 1       ? ParallelMode::kPipelineParallel
         : get_model_parallel_world_size() > 1    ? ParallelMode::kTensorParallel
         : get_sep_parallel_world_size() > 1      ? ParallelMode::kSegmentParallel
         : get_sharding_parallel_world_size() > 1 ? ParallelMode::kShardingParallel
                                                  : ParallelMode::kDataParallel;
}

}  // namespace argosy::fleet
