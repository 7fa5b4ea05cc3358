#include "argosy/runs/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/runs/files.h"

namespace argosy::runs {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 3;
constexpr int64_t kMostRanks = 4096;

constexpr size_t kLargestFile = size_t{1} << 20;
constexpr const char* kServers = "servers.json";

void write_json(const std::string& folder,
                const std::string& name,
                const nlohmann::ordered_json& json) {
  make_folder(folder);
  replace_file(folder + "/" + name,
               json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

/// The folders below `folder` that hold a run.json; those of a run are not looked into.
void gather(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) {
      continue;
    }
    if (fs::exists(at->path() / "run.json", ignored)) {
      found.push_back(at->path());
    } else if (depth < kDeepest) {
      gather(at->path(), depth + 1, found);
    }
  }
}

bool move_away(const std::string& folder, const std::string& file) {
  std::error_code error;
  fs::rename(folder + "/" + file, folder + "/earlier." + file, error);
  return !error;
}

Run read_run(const std::string& folder, const std::string& name) {
  return {.folder = folder, .name = name, .config = read_run_config(folder)};
}

}  // namespace

FoundRuns list_runs(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw DataError("runs.list",
                    "is no folder. Runs lie in runs/ of the folder that they were started in; "
                    "--dir names another",
                    {folder});
  }
  std::vector<fs::path> paths;
  gather(folder, 1, paths);
  FoundRuns found;
  for (const fs::path& path : paths) {
    try {
      found.runs.push_back(read_run(path.string(), path.lexically_relative(folder).string()));
    } catch (const DataError& error) {
      found.broken.emplace_back(error.what());
    }
  }
  std::ranges::sort(found.runs, [](const Run& a, const Run& b) {
    return std::pair(b.config.started, a.name) < std::pair(a.config.started, b.name);
  });
  std::ranges::sort(found.broken);
  return found;
}

Run find_run(const std::string& name, const std::string& folder) {
  for (const fs::path& path : {fs::path(folder) / name, fs::path(name)}) {
    if (file_size((path / "run.json").string()) >= 0) {
      return read_run(path.string(), name);
    }
  }
  std::vector<fs::path> paths;
  gather(folder, 1, paths);
  std::vector<std::string> names;
  for (const fs::path& path : paths) {
    names.push_back(path.lexically_relative(folder).string());
  }
  const auto meant = strings::closest(name, names);
  throw UsageError("runs.find",
                   fmt::format("no run \"{}\" in {}.{} See: argosy runs ls",
                               name,
                               folder,
                               meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

void write_rank_file(const std::string& folder, int rank, const nlohmann::ordered_json& about) {
  write_json(folder, fmt::format("rank{}.json", rank), about);
}

void move_away_ranks(const std::string& folder, int ranks) {
  bool more = true;
  for (int rank = ranks; more; ++rank) {
    more = move_away(folder, fmt::format("rank{}.json", rank));
    more = move_away(folder, fmt::format("timeline.rank{}.json", rank)) || more;
  }
}

void move_away_servers(const std::string& folder) {
  move_away(folder, kServers);
  move_away(folder, kServerFigures);
}

std::optional<std::string> first_failure(const std::string& folder, const std::string& before) {
  std::optional<std::string> failure;
  std::string first = before;
  for (const nlohmann::ordered_json& rank : read_rank_files(folder)) {
    const std::string at = rank.value("failed", "");
    if (!at.empty() && at < first) {
      first = at;
      failure = fmt::format("rank {}: {}", rank.value("rank", 0), rank.value("error", ""));
    }
  }
  return failure;
}

void write_servers_file(const std::string& folder, const nlohmann::ordered_json& servers) {
  write_json(folder, kServers, servers);
}

std::vector<nlohmann::ordered_json> read_servers_file(const std::string& folder) {
  std::vector<nlohmann::ordered_json> servers;
  const auto text = read_small_file(fmt::format("{}/{}", folder, kServers), kLargestFile);
  const auto json = nlohmann::ordered_json::parse(text.value_or(""), nullptr, false);
  if (json.is_array()) {
    std::ranges::copy_if(json, std::back_inserter(servers), [&](const auto& server) {
      return server.is_object() && servers.size() < kMostRanks;
    });
  }
  return servers;
}

std::vector<nlohmann::ordered_json> read_rank_files(const std::string& folder) {
  std::map<int64_t, nlohmann::ordered_json> ranks;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("rank") || !name.ends_with(".json")) {
      continue;
    }
    const auto number = strings::parse_int(name.substr(4, name.size() - 9));
    const auto text = read_small_file(at->path().string(), kLargestFile);
    if (!number || *number < 0 || *number >= kMostRanks || !text) {
      continue;
    }
    auto json = nlohmann::ordered_json::parse(*text, nullptr, false);
    if (json.is_object()) {
      ranks[*number] = std::move(json);
    }
  }
  std::vector<nlohmann::ordered_json> all;
  for (auto& [number, json] : ranks) {
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace argosy::runs
