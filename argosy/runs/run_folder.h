#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/runs/run_config.h"

namespace argosy::runs {

/// What servers tell over the steps, in the form of metrics.jsonl: the split is "server 0".
inline constexpr const char* kServerFigures = "servers.jsonl";

/// A run, read from its folder.
struct Run {
  std::string folder{};
  std::string name{};  ///< the folder's own name, by which users ask for it
  RunConfig config{};
};

struct FoundRuns {
  std::vector<Run> runs{};            ///< the newest first
  std::vector<std::string> broken{};  ///< errors of folders whose run.json cannot be read
};

/// Returns the runs in `folder`: folders with a run.json, up to three levels deep.
/// Errors: DataError "runs.list" if `folder` is not a folder.
[[nodiscard]] FoundRuns list_runs(const std::string& folder);

/// Returns the run `name`: a folder with a run.json, or one below `folder`.
/// Errors: UsageError "runs.find" naming the run that you probably meant; DataError of run.json.
[[nodiscard]] Run find_run(const std::string& name, const std::string& folder);

/// Returns the objects of all `rank<k>.json`, sorted by k, at most 4,096.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_rank_files(const std::string& folder);

/// Writes `rank<k>.json`, whole or not at all. Errors: DataError "runs.write" with the path.
void write_rank_file(const std::string& folder, int rank, const nlohmann::ordered_json& about);

/// Renames what ranks from `ranks` on have left, their `rank<k>.json` and timelines, to
/// `earlier.<name>`: the training that begins has no such ranks.
void move_away_ranks(const std::string& folder, int ranks);
/// Does so with `servers.json` and `servers.jsonl`.
void move_away_servers(const std::string& folder);

/// Returns the failure that came first by the ranks' files on this host, and before that UTC time:
/// "rank 1: [data.jpeg] …". nullopt: none has failed.
[[nodiscard]] std::optional<std::string> first_failure(const std::string& folder,
                                                       const std::string& before = "~");

/// Writes `servers.json`, a list of objects with what each server told last, whole or not at all.
/// Errors: DataError "runs.write" with the path.
void write_servers_file(const std::string& folder, const nlohmann::ordered_json& servers);
/// Returns its objects; none where the run has no servers, or the file is damaged.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_servers_file(const std::string& folder);

}  // namespace argosy::runs
