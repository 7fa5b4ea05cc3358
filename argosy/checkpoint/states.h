#pragma once

#include <string>

#include "argosy/base/error.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/optim/ema.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/lr_scheduler.h"
#include "argosy/optim/optimizer.h"

/// How the states of a training's parts stand in a Snapshot, each under a name. Training puts and
/// takes them all; fit() uses the same form, so that either reads the other's checkpoints.
///
///     checkpoint::put_state(snapshot, "optimizer", optimizer.state_dict());
///     optimizer.load_state_dict(
///         checkpoint::get_state<optim::OptimizerState>(snapshot, "optimizer"));
namespace argosy::checkpoint {

/// Tensors become the part `name`, as "<parameter>/<state>"; numbers become values[name].
void put_state(Snapshot& snapshot, const std::string& name, const optim::OptimizerState& state);
void put_state(Snapshot& snapshot, const std::string& name, const optim::LRSchedulerState& state);
void put_state(Snapshot& snapshot, const std::string& name, const optim::GradScalerState& state);
void put_state(Snapshot& snapshot, const std::string& name, const optim::EmaState& state);

/// The same back: get_state<optim::OptimizerState>(snapshot, "optimizer").
/// Errors: CheckpointError: `snapshot` has no such state, or something else under that name.
template <typename State>
[[nodiscard]] State get_state(const Snapshot& snapshot, const std::string& name);
template <>
optim::OptimizerState get_state(const Snapshot& snapshot, const std::string& name);
template <>
optim::LRSchedulerState get_state(const Snapshot& snapshot, const std::string& name);
template <>
optim::GradScalerState get_state(const Snapshot& snapshot, const std::string& name);
template <>
optim::EmaState get_state(const Snapshot& snapshot, const std::string& name);

/// A schedule's or a scaler's state as JSON, and back.
/// Errors: CheckpointError that names a field that is missing or no number.
[[nodiscard]] nlohmann::ordered_json to_json(const optim::LRSchedulerState& state);
[[nodiscard]] nlohmann::ordered_json to_json(const optim::GradScalerState& state);
[[nodiscard]] optim::LRSchedulerState schedule_state(const nlohmann::ordered_json& object);
[[nodiscard]] optim::GradScalerState scaler_state(const nlohmann::ordered_json& object);

/// What each rank has of its own: the generators of random numbers and, on every rank but the
/// first, the module's buffers, because those of rank 0 stand in the module's part.
void put_rank_state(Snapshot& snapshot,
                    const std::string& name,
                    const torch::nn::Module& module,
                    int rank);
/// The same back into the generators and the module. A rank that had none keeps its own.
void load_rank_state(const Snapshot& snapshot,
                     const std::string& name,
                     const torch::nn::Module& module);

/// values[name]. Errors: CheckpointError: there is none.
[[nodiscard]] const nlohmann::ordered_json& value_of(const nlohmann::ordered_json& values,
                                                     const std::string& name);

/// Reads with `read`; what JSON finds wrong becomes a CheckpointError about `what`.
template <typename Read>
auto read_value(const std::string& what, Read read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        "checkpoint.resume",
        "the checkpoint's values are of another form: " + std::string(error.what()),
        {.key = what});
  }
}

}  // namespace argosy::checkpoint
