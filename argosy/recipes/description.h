#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/recipes/assembly.h"
#include "argosy/recipes/settings.h"

// Internal to the room.
namespace argosy::recipes {

/// What a run's recipe.json holds: all that its weights need to be used again, also where the data
/// that they were trained on is not.
struct Description {
  TrainSettings settings{};
  PictureShape shape{};
  ModelSize size{};
  std::vector<std::string> classes{};
  std::vector<std::string> point_names{};
  /// "after step 120: --augment flip (was …)": what a training was told otherwise when it went on.
  std::vector<std::string> changes{};
};

[[nodiscard]] Description describe(const TrainSettings& resolved, const Assembly& assembly);
/// `folder`/recipe.json, whole or not at all. Errors: DataError with path.
void write_description(const std::string& folder, const Description& description);
/// `folder`/recipe.json. None: there is none. Errors: ConfigError with the path of a damaged one.
[[nodiscard]] std::optional<Description> read_description(const std::string& folder);
/// Of the run that `path` is or lies in: its folder, a checkpoint in it, a file in it. None: there
/// is no recipe.json up to two folders above. Errors: as of read_description().
[[nodiscard]] std::optional<Description> find_description(const std::string& path);

/// For the log: the options by which a run that goes on differs from how it began, but for those
/// that may change from start to start; empty: none.
[[nodiscard]] std::string changed_options(TrainSettings begun, const TrainSettings& now);

}  // namespace argosy::recipes
