#pragma once

#include <string>

#include "argosy/base/error.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/optim/ema.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/lr_scheduler.h"
#include "argosy/optim/optimizer.h"

/// Puts the states of a training's parts into a Snapshot, each under a name, and gets them back.
/// TrainingSaver does it for all parts. fit() uses the same form, so each reads the other's
/// checkpoints.
///
///     checkpoint::put_state(snapshot, "optimizer", optimizer.state_dict());
///     optimizer.load_state_dict(
///         checkpoint::get_state<optim::OptimizerState>(snapshot, "optimizer"));
namespace argosy::checkpoint {

/// Tensors become the part `name`, with the names "<parameter>/<state>"; numbers become
/// values[name].
void put_state(Snapshot& snapshot, const std::string& name, const optim::OptimizerState& state);
void put_state(Snapshot& snapshot, const std::string& name, const optim::LRSchedulerState& state);
void put_state(Snapshot& snapshot, const std::string& name, const optim::GradScalerState& state);
void put_state(Snapshot& snapshot, const std::string& name, const optim::EmaState& state);

/// Returns the state: get_state<optim::OptimizerState>(snapshot, "optimizer").
/// Errors: CheckpointError if `snapshot` has no such state, or something else under that name.
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

/// Converts the state of a schedule or a scaler to JSON and back.
/// Errors: CheckpointError naming a field that is missing or not a number.
[[nodiscard]] nlohmann::ordered_json to_json(const optim::LRSchedulerState& state);
[[nodiscard]] nlohmann::ordered_json to_json(const optim::GradScalerState& state);
[[nodiscard]] optim::LRSchedulerState schedule_state(const nlohmann::ordered_json& object);
[[nodiscard]] optim::GradScalerState scaler_state(const nlohmann::ordered_json& object);

/// Puts what belongs to a rank alone: the generators of random numbers and, except on rank 0, the
/// module's buffers. Those of rank 0 are in the module's part.
void put_rank_state(Snapshot& snapshot,
                    const std::string& name,
                    const torch::nn::Module& module,
                    int rank);
/// Restores the generators. A rank without a saved state keeps its own.
void load_generators(const Snapshot& snapshot);
/// Restores the generators and the module's buffers. A rank without a saved state keeps its own.
void load_rank_state(const Snapshot& snapshot,
                     const std::string& name,
                     const torch::nn::Module& module);

/// Returns values[name]. Errors: CheckpointError if it does not exist.
[[nodiscard]] const nlohmann::ordered_json& value_of(const nlohmann::ordered_json& values,
                                                     const std::string& name);

/// Calls `read` and turns errors of JSON into a CheckpointError about `what`.
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
