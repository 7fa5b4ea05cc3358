#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/optim/optimizer.h"
#include "argosy/ps/training.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/run.h"
#include "argosy/recipes/settings.h"
#include "argosy/recommend/click_model.h"
#include "argosy/recommend/click_scores.h"
#include "argosy/recommend/click_stream.h"

#include <nlohmann/json_fwd.hpp>

// Internal to the room: models of clicks, whose rows lie on servers. Their trainings are no
// collectives, so they have ways of their own through all commands.
namespace argosy::recipes {

/// True if the settings' model learns from clicks; without a model, if that of the run does. False
/// where there is none, which others say. Errors: UsageError for an unknown model.
[[nodiscard]] bool is_of_clicks(const TrainSettings& settings);
[[nodiscard]] bool is_of_clicks(const EvaluateSettings& settings);

/// Errors: UsageError for another model in a job with servers.
void refuse_servers(const TrainSettings& settings);

/// What run.h says, for them.
[[nodiscard]] nlohmann::ordered_json train_clicks(const TrainSettings& settings);
[[nodiscard]] Plan plan_clicks(const TrainSettings& settings);
[[nodiscard]] nlohmann::ordered_json evaluate_clicks(const EvaluateSettings& settings);
[[nodiscard]] nlohmann::ordered_json predict_clicks(const PredictSettings& settings,
                                                    const std::vector<std::string>& files);

/// Returns the settings completed, as a run stores them.
/// Errors: UsageError for options that do not act on such a model, with the reason.
[[nodiscard]] TrainSettings resolve_clicks(const TrainSettings& settings);

/// A model and its optimizer, as resolved settings say.
struct ClickParts {
  recommend::ClickModel model{nullptr};
  optim::Optimizer optimizer;
};
[[nodiscard]] ClickParts click_parts(const TrainSettings& resolved);

/// A log on the command line: "criteo:FILE,limit=1000".
struct ClickLogSpec {
  std::string path{};
  int64_t limit = 0;  ///< 0: all lines
};
/// `option`: "--data". Errors: UsageError for another data set.
[[nodiscard]] ClickLogSpec click_log(const std::string& option, const std::string& text);
/// Opens it and reads a line, so that what is wrong is told before any work.
/// Errors: those of click_log() and CriteoReader; DataError for a log without a line.
void check_click_log(const std::string& option, const std::string& text);

/// Lines that an evaluation or a prediction reads at once, unless the user says otherwise.
inline constexpr int64_t kClickBatch = 4096;

/// Returns the newest whole checkpoint of a run, of a folder of checkpoints, or the path itself if
/// it is one. Lengths of files count. Errors: CheckpointError where there is none.
[[nodiscard]] std::string newest_checkpoint(const std::string& path);

/// Who this process is: as the launcher says, or alone.
/// Errors: UsageError for several processes without servers, with the command to type.
[[nodiscard]] ps::Roles click_roles(const TrainSettings& settings);

}  // namespace argosy::recipes
