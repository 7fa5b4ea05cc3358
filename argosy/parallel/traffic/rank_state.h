#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/engine/state_dict.h"
#include "argosy/optim/optimizer.h"

// Internal to the room: state that differs from one virtual rank to another, in the state of an
// optimizer.
namespace argosy::parallel::traffic {

/// Who has which virtual ranks.
using Deal = std::shared_ptr<const comm::LeafDeal>;
[[nodiscard]] Deal one_each(const comm::Group& group);
/// Returns the virtual ranks of a process, or of this one.
[[nodiscard]] IndexRange leaves_of(const comm::LeafDeal& deal, int rank);

/// Errors: UsageError if `way` remembers something of other virtual ranks than it is to have.
void check_can_deal(const std::string& way,
                    const comm::LeafDeal& before,
                    const comm::LeafDeal& now,
                    bool remembers);

/// Returns what each virtual rank has of its own as one tensor [virtual ranks, elements] of which
/// this process has its rows, `own` [its virtual ranks, elements]. A checkpoint takes the rows from
/// each process; whoever reads the whole gathers it, on all of them alike. It shares the memory of
/// `own`, which is contiguous.
[[nodiscard]] at::Tensor rows_of_ranks(const at::Tensor& own,
                                       const Deal& deal,
                                       const comm::Group& group);

/// Copies this process's rows of `saved`, which rows_of_ranks() made, into `own`.
/// Errors: CheckpointError naming `what` if it is of another number of virtual ranks, or of other
/// elements.
void take_rows(const at::Tensor& own,
               const at::Tensor& saved,
               const Deal& deal,
               const comm::Group& group,
               const std::string& what);

/// Copies `saved`, which all ranks have alike, into `own`. Errors: as of take_rows().
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
