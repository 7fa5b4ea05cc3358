#pragma once

#include <string>

#include "argosy/engine/named.h"
#include "argosy/optim/optimizer.h"
#include "argosy/recipes/assembly.h"
#include "argosy/recipes/schedules.h"
#include "argosy/recipes/settings.h"
#include "argosy/train/amp.h"

// Internal to the room: steps that planning, training, evaluating and predicting share.
namespace argosy::recipes {

/// The weights that a run leaves, as Python's torch.load reads them.
inline constexpr const char* kWeightsFile = "model.pt";

[[nodiscard]] Wanted wanted_of(const TrainSettings& settings);

/// The settings with what follows from model, data and optimizer: side, augmentation, rates. What
/// is stored with a run, so that it can be repeated when defaults change.
[[nodiscard]] TrainSettings resolve(const TrainSettings& settings, const Assembly& assembly);

/// Of a training by so many processes. Errors: UsageError when an epoch has no batch.
[[nodiscard]] Lengths lengths_of(const TrainSettings& settings, const DataSet& data, int processes);

[[nodiscard]] optim::Optimizer make_optimizer(const TrainSettings& settings,
                                              const engine::NamedTensors& parameters);

/// Of the setting "amp": nullopt for "off".
[[nodiscard]] std::optional<train::AmpOptions> amp_of(const std::string& amp);

/// Joins the job, as the settings say. Collective.
void join(const TrainSettings& settings);
void join();

/// What an evaluation or prediction needs: the run's settings where `weights` belongs to a run,
/// replaced by those that were given.
struct Restored {
  Assembly assembly{};
  std::string weights{};  ///< what was read
  std::string split{};
  double label_smoothing = 0;  ///< of the run, so that its figures can be compared
  std::string amp = "off";     ///< likewise, unless it is asked for
};
/// Puts the model together and reads its weights. `pictures`: what it looks at instead of a data
/// set; nullptr: none. Errors: CheckpointError: no weights there, those of another model.
[[nodiscard]] Restored restore(const EvaluateSettings& settings,
                               std::shared_ptr<const datasets::Source> pictures = nullptr);

}  // namespace argosy::recipes
