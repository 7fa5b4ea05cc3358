#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/fleet/strategy.h"
#include "argosy/parallel/mesh.h"

namespace argosy::fleet {

/// How a job's ranks are divided, in order of precedence. Names and values are Paddle's.
enum class ParallelMode {
  kDataParallel = 0,
  kTensorParallel = 1,
  kPipelineParallel = 2,
  kShardingParallel = 3,
  kSegmentParallel = 4,
};

/// Returns the axes of the mesh that a strategy describes, outermost first: "dp", "pp", "sharding",
/// "sep" and "mp", unless it has another order. Degrees that are not given are 1, and that of dp is
/// what the others leave.
[[nodiscard]] std::vector<parallel::MeshAxis> mesh_axes(const DistributedStrategy& strategy);

/// The ranks of a job by axes, in Paddle's words: data (dp), model (mp), pipe (pp), sharding, sep.
/// See parallel::Mesh, which it shows.
///
///     const auto hcg = fleet::get_hybrid_communicate_group();
///     hcg.get_sharding_parallel_rank();
///
/// A group is made when it is first asked for, by its members: all of them ask in the same order.
/// Source: paddle.distributed.fleet.base.topology.HybridCommunicateGroup.
class HybridCommunicateGroup final {
 public:
  explicit HybridCommunicateGroup(parallel::Mesh mesh) : mesh_(std::move(mesh)) {}

  [[nodiscard]] const parallel::Mesh& mesh() const { return mesh_; }
  [[nodiscard]] int get_global_rank() const { return mesh_.ranks().rank(); }
  [[nodiscard]] ParallelMode get_parallel_mode() const;

  [[nodiscard]] int64_t get_data_parallel_rank() const { return mesh_.coordinate("dp"); }
  [[nodiscard]] int64_t get_data_parallel_world_size() const { return mesh_.size("dp"); }
  [[nodiscard]] comm::Group get_data_parallel_group() const { return mesh_.group("dp"); }
  [[nodiscard]] int get_data_parallel_group_src_rank() const { return first_along("dp"); }

  [[nodiscard]] int64_t get_model_parallel_rank() const { return mesh_.coordinate("mp"); }
  [[nodiscard]] int64_t get_model_parallel_world_size() const { return mesh_.size("mp"); }
  [[nodiscard]] comm::Group get_model_parallel_group() const { return mesh_.group("mp"); }
  [[nodiscard]] int get_model_parallel_group_src_rank() const { return first_along("mp"); }

  [[nodiscard]] int64_t get_sharding_parallel_rank() const { return mesh_.coordinate("sharding"); }
  [[nodiscard]] int64_t get_sharding_parallel_world_size() const { return mesh_.size("sharding"); }
  [[nodiscard]] comm::Group get_sharding_parallel_group() const { return mesh_.group("sharding"); }
  [[nodiscard]] int get_sharding_parallel_group_src_rank() const { return first_along("sharding"); }

  [[nodiscard]] int64_t get_sep_parallel_rank() const { return mesh_.coordinate("sep"); }
  [[nodiscard]] int64_t get_sep_parallel_world_size() const { return mesh_.size("sep"); }
  [[nodiscard]] comm::Group get_sep_parallel_group() const { return mesh_.group("sep"); }
  [[nodiscard]] int get_sep_parallel_group_src_rank() const { return first_along("sep"); }

  [[nodiscard]] int64_t get_stage_id() const { return mesh_.coordinate("pp"); }
  [[nodiscard]] int64_t get_pipe_parallel_world_size() const { return mesh_.size("pp"); }
  [[nodiscard]] comm::Group get_pipe_parallel_group() const { return mesh_.group("pp"); }
  [[nodiscard]] bool is_first_stage() const { return get_stage_id() == 0; }
  [[nodiscard]] bool is_last_stage() const {
    return get_stage_id() + 1 == get_pipe_parallel_world_size();
  }
  /// The rank that has this one's place in another stage.
  [[nodiscard]] int get_rank_from_stage(int64_t stage) const {
    return mesh_.rank_at({{"pp", stage}});
  }

  /// The ranks over which norms and the search for infinities go: all but the replicas; with
  /// `sharding` all but those that divide the state.
  [[nodiscard]] comm::Group get_check_parallel_group(bool sharding = false) const {
    return mesh_.group_along({sharding ? "dp" : "sharding", "pp", "sep", "mp"});
  }
  [[nodiscard]] comm::Group get_dp_sep_parallel_group() const {
    return mesh_.group_along({"dp", "sep"});
  }
  [[nodiscard]] comm::Group get_pp_mp_parallel_group() const {
    return mesh_.group_along({"pp", "mp"});
  }

 private:
  [[nodiscard]] int first_along(const std::string& axis) const {
    return mesh_.ranks_along({axis}).front();
  }

  parallel::Mesh mesh_;
};

}  // namespace argosy::fleet
