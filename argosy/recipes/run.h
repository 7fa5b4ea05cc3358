#pragma once

#include <string>
#include <vector>

#include "argosy/recipes/settings.h"
#include "argosy/text/generate_text.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {

/// A description of a training without a training: data, sizes, model, number of updates.
struct Plan {
  nlohmann::ordered_json
      options{};  ///< the given ones, and those that model, data and optimizer imply
  nlohmann::ordered_json data{};      ///< splits with their sizes, classes, chains of transforms
  nlohmann::ordered_json model{};     ///< input, parameters, arithmetic, memory
  nlohmann::ordered_json training{};  ///< processes, batch of an update, updates

  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// Returns the plan as text for people.
  [[nodiscard]] std::string to_string() const;
};

/// Opens the data, makes the model and writes nothing. `processes` is the number that would share
/// the work.
/// Errors: those of train() before its first batch.
[[nodiscard]] Plan plan(const TrainSettings& settings, int processes);

/// Trains as `argosy train` does, alone or as a rank of a job. Collective over the job. Returns the
/// result, equal on all ranks: {"command":"train","ended":…,"steps":…,
/// "epochs":[…],"result":{…},"weights_hash":…,"run_dir":…}.
/// Errors: UsageError and ConfigError for the settings, DataError, CheckpointError, and errors of
/// the training.
[[nodiscard]] nlohmann::ordered_json train(const TrainSettings& settings);

/// Returns loss and metrics over a split, each sample once. Collective over the job.
[[nodiscard]] nlohmann::ordered_json evaluate(const EvaluateSettings& settings);

/// Predicts for a split, or for `pictures`: files and folders. Writes what the settings name.
/// Returns the number of predictions and, if labels are known, how many are right. Collective.
[[nodiscard]] nlohmann::ordered_json predict(const PredictSettings& settings,
                                             const std::vector<std::string>& pictures);

/// Returns --prompt and what the language model continues it with; `on_text` gets the latter as it
/// comes. Of one process.
/// Errors: UsageError for the settings, a model that is no language model, and a prompt that leaves
/// no room for new tokens; CheckpointError when there are no weights, or they belong to another
/// model.
std::string generate(const GenerateSettings& settings, const text::OnText& on_text);

}  // namespace argosy::recipes
