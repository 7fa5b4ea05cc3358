#pragma once

#include <string>

#include "argosy/recipes/assembly.h"
#include "argosy/recipes/settings.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {

/// What a training would be, without a training: data, sizes, model, number of updates.
struct Plan {
  nlohmann::ordered_json options{};   ///< as given, with what follows from model, data, optimizer
  nlohmann::ordered_json data{};      ///< splits with their sizes, classes, chains of transforms
  nlohmann::ordered_json model{};     ///< input, parameters, arithmetic, memory
  nlohmann::ordered_json training{};  ///< processes, batch of an update, updates

  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// The same for people.
  [[nodiscard]] std::string to_string() const;
};

/// Opens the data, makes the model and writes nothing. `processes`: how many would share the work.
/// Errors: what train() would say before its first batch.
[[nodiscard]] Plan plan(const TrainSettings& settings, int processes);

/// Trains, as `argosy train`: alone, or as a rank of a job. Collective over the job.
/// Returns what it came to, equal on all ranks: {"command":"train","ended":…,"steps":…,
/// "epochs":[…],"result":{…},"weights_hash":…,"run_dir":…}.
/// Errors: UsageError and ConfigError of the settings, DataError, CheckpointError, what training
/// throws.
[[nodiscard]] nlohmann::ordered_json train(const TrainSettings& settings);

/// Loss and metrics over a split, each sample once. Collective over the job.
[[nodiscard]] nlohmann::ordered_json evaluate(const EvaluateSettings& settings);

/// Predictions for a split, or for `pictures`: files and folders. Writes what the settings say;
/// returns how many there are and, where labels are known, how many are right. Collective.
[[nodiscard]] nlohmann::ordered_json predict(const PredictSettings& settings,
                                             const std::vector<std::string>& pictures);

}  // namespace argosy::recipes
