#pragma once

#include <map>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/state_dict.h"
#include "argosy/optim/optimizer.h"

// Internal to the room: state that differs from rank to rank, in the state of an optimizer.
namespace argosy::parallel::traffic {

/// Returns what each rank has of its own as one tensor [ranks, elements] of which this rank has its
/// row. A checkpoint takes the row from each rank; whoever reads the whole gathers it, on all ranks
/// alike. It shares the memory of `own`, which is contiguous.
[[nodiscard]] at::Tensor rows_of_ranks(const at::Tensor& own, const comm::Group& group);

/// Copies this rank's row of `saved`, which rows_of_ranks() made, into `own`.
/// Errors: CheckpointError naming `what` if another number of ranks saved it, or other elements.
void take_row(const at::Tensor& own,
              const at::Tensor& saved,
              const comm::Group& group,
              const std::string& what);

/// Copies `saved`, which all ranks have alike, into `own`. Errors: as of take_row().
void take_whole(const at::Tensor& own, const at::Tensor& saved, const std::string& what);

/// Returns the entries of a parameter, added if it has none.
[[nodiscard]] engine::StateDict& entries_of(optim::OptimizerState& state, std::string_view name);

/// Takes the entries whose names begin with `prefix` out of the state, and returns them by
/// parameter, without the prefix. A parameter without other entries goes with them.
[[nodiscard]] std::map<std::string, engine::StateDict> taken_out(optim::OptimizerState& state,
                                                                 std::string_view prefix);

/// Numbers of steps as entries of a state.
[[nodiscard]] at::Tensor count_tensor(int64_t count);
[[nodiscard]] int64_t count_in(const engine::StateDict& entries, std::string_view name);

}  // namespace argosy::parallel::traffic
