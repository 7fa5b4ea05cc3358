#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "argosy/engine/named.h"
#include "argosy/fleet/strategy.h"
#include "argosy/optim/optimizer.h"
#include "argosy/recipes/assembly.h"
#include "argosy/recipes/schedules.h"
#include "argosy/recipes/settings.h"
#include "argosy/train/amp.h"
#include "argosy/train/model.h"

// Internal to the room: steps that planning, training, evaluating and predicting share.
namespace argosy::recipes {

/// The file of weights that a run leaves. Python's torch.load can read it.
inline constexpr const char* kWeightsFile = "model.pt";

[[nodiscard]] Wanted wanted_of(const TrainSettings& settings);

/// Returns the settings completed by what model, data and optimizer imply: side, augmentation,
/// rates. They are stored with a run, so that it can be repeated when defaults change.
[[nodiscard]] TrainSettings resolve(const TrainSettings& settings, const Assembly& assembly);

/// Returns the lengths of a training with `ranks` virtual ranks. Errors: UsageError when an epoch
/// has no batch.
[[nodiscard]] Lengths lengths_of(const TrainSettings& settings,
                                 const Assembly& assembly,
                                 int64_t ranks);

[[nodiscard]] optim::Optimizer make_optimizer(const TrainSettings& settings,
                                              const engine::NamedTensors& parameters);

/// The word of the setting "amp" for 16-bit parameters with f32 masters, which processes divide.
inline constexpr const char* kPure = "pure_bfloat16";

/// Returns the options for the setting "amp". nullopt: it is "off", or the strategy's.
[[nodiscard]] std::optional<train::AmpOptions> amp_of(const std::string& amp);

/// Moves the network to the device, which it makes current, and wraps it for the job. Collective.
/// Errors: UsageError for a device that is not there; see engine::find_device().
[[nodiscard]] train::Model model_on(const std::string& device, const Assembly& assembly);

/// Reads --mesh as DistributedStrategy::hybrid_configs: "dp=2,sharding=2" or Paddle's words
/// ("dp_degree=2"), -1 for what the others leave, an axis alone likewise. Empty: no axes.
/// Errors: UsageError for an axis that does not exist, or not yet.
[[nodiscard]] std::map<std::string, int64_t> mesh_of(const std::string& mesh);

/// Errors: UsageError for settings that only parameters have that processes divide.
[[nodiscard]] fleet::DistributedStrategy strategy_of(const TrainSettings& settings);

/// Joins the job, as the settings say. Collective.
void join(const TrainSettings& settings);
void join(const std::string& device);

}  // namespace argosy::recipes
