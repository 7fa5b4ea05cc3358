#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/recipes/augment.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/settings.h"

// Internal to the room.
namespace argosy::recipes {

inline constexpr const char* kDescriptionFile = "recipe.json";

/// The content of a run's recipe.json. It is enough to use the run's weights again, even without
/// the data on which they were trained.
struct StoredRecipe {
  TrainSettings settings{};
  PictureShape shape{};  ///< of pictures, as the next four
  ModelSize sizes{};
  Task task = Task::kClass;
  std::vector<std::string> classes{};
  std::vector<std::string> point_names{};
  /// Options that changed when the training was resumed: "after step 120: --augment flip (was …)".
  std::vector<std::string> changes{};
};

/// Writes `folder`/recipe.json, whole or not at all. Errors: DataError with path.
void write_description(const std::string& folder, const StoredRecipe& description);
/// Returns what `folder`/recipe.json says, or nullopt if there is none. Errors: ConfigError with
/// the path of a damaged one.
[[nodiscard]] std::optional<StoredRecipe> read_description(const std::string& folder);
/// Reads the description of the run to which `path` belongs: its folder, a checkpoint in it or a
/// file in it. nullopt: there is no recipe.json up to two folders above. Errors: as for
/// read_description().
[[nodiscard]] std::optional<StoredRecipe> find_description(const std::string& path);

/// Returns the options that differ between the start of a run and its resumption, for the log. It
/// leaves out those that may change with every start. Empty: none differs.
[[nodiscard]] std::string changed_options(TrainSettings begun, const TrainSettings& now);

}  // namespace argosy::recipes
