#pragma once

#include <string>
#include <vector>

#include "argosy/runs/run_config.h"

namespace argosy::runs {

/// A run as its folder tells it.
struct Run {
  std::string folder{};
  std::string name{};  ///< the folder's own name: how it is asked for
  RunConfig config{};
};

struct FoundRuns {
  std::vector<Run> runs{};  ///< the newest first
  std::vector<std::string>
      broken{};  ///< what is wrong with the folders whose run.json cannot be read
};

/// The runs in `folder`: its folders that hold a run.json, with their own folders, three deep.
/// Errors: DataError "runs.list": `folder` is no folder.
[[nodiscard]] FoundRuns list_runs(const std::string& folder);

/// The run that `name` means: a folder with a run.json, or one below `folder`.
/// Errors: UsageError "runs.find" naming the run that was probably meant; DataError of run.json.
[[nodiscard]] Run find_run(const std::string& name, const std::string& folder);

/// What the ranks say of themselves: `rank<k>.json` of each, ascending in k; objects only. At most
/// 4,096.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_rank_files(const std::string& folder);

/// Says it: `rank<k>.json`, whole or not at all. Errors: DataError "runs.write" with path.
void write_rank_file(const std::string& folder, int rank, const nlohmann::ordered_json& about);

}  // namespace argosy::runs
