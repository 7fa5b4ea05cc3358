#include "argosy/checkpoint/save_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/checkpoint/piece.h"
#include "argosy/checkpoint/shard_plan.h"
#include "argosy/checkpoint/values_text.h"
#include "argosy/comm/json.h"
#include "argosy/engine/parts.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

int rank_of(const comm::Group& group) {
  return group.valid() ? group.rank() : 0;
}
int size_of(const comm::Group& group) {
  return group.valid() ? group.size() : 1;
}

/// Without the "[room.op] " of the first thrower.
std::string bare(const std::exception& error) {
  const std::string text = error.what();
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

bool is_part_name(const std::string& name) {
  const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  const bool rank =
      name.starts_with("rank") && name.find_first_not_of("0123456789", 4) == std::string::npos;
  return plain && !rank && name != "state" && name != "manifest";
}

void check(const Snapshot& snapshot, const std::string& name) {
  const auto need = [](bool fine, const std::string& what) {
    if (!fine) {
      throw UsageError("checkpoint.save", what);
    }
  };
  need(!name.empty() && name.front() != '.' && name.find('/') == std::string::npos,
       fmt::format("expected the name of a folder without \"/\", got \"{}\"", name));
  need(snapshot.step >= 0, fmt::format("step: expected 0 or more, got {}", snapshot.step));
  need(!snapshot.score || std::isfinite(*snapshot.score), "score: expected a finite number");
  std::set<std::string> names;
  for (const auto& [part, dict] : snapshot.parts) {
    need(
        is_part_name(part) && names.insert(part).second,
        fmt::format("expected parts of letters, digits, \"_\" and \"-\", each once, and not state, "
                    "manifest or rank0; got \"{}\"",
                    part));
  }
}

std::string file_name(const std::string& part, bool sharded, const comm::Group& group) {
  return sharded ? fmt::format(
                       "{}-{:05}-of-{:05}.safetensors", part, rank_of(group) + 1, size_of(group))
                 : part + ".safetensors";
}

/// Of a part that rank 0 writes. Collective where ranks divide tensors of it: they gather each.
engine::StateDict whole_on_first(const engine::StateDict& dict, const comm::Group& group) {
  engine::StateDict whole;
  for (const auto& [name, tensor] : dict) {
    const bool gathered = size_of(group) > 1 && is_divided(tensor);
    const at::Tensor values = gathered ? engine::values_of(tensor) : tensor;
    if (!gathered && !piece_of(values).is_all) {
      throw CheckpointError("checkpoint.save",
                            "ranks divide its values, and each saves for itself. Give the Saver "
                            "the group of these ranks",
                            {{}, name});
    }
    if (rank_of(group) == 0) {
      whole.set(name, values);
    }
  }
  return whole;
}

void stage_all(const Snapshot& snapshot,
               SaveJob& job,
               const comm::Group& group,
               StagingPool& pool) {
  std::vector<engine::StateDict> wholes;  // before anything can fail on one rank alone
  for (const auto& [part, dict] : snapshot.parts) {
    wholes.push_back(job.sharded ? engine::StateDict() : whole_on_first(dict, group));
  }
  check(snapshot, job.name);
  for (size_t i = 0; i < wholes.size(); ++i) {
    const auto& [part, dict] = snapshot.parts[i];
    job.manifest.parts.push_back(part);
    if (!job.sharded && rank_of(group) == 0 && !dict.empty()) {
      job.files.push_back(stage(file_name(part, false, group), part, wholes[i], pool));
    }
  }
  for (const auto& [name, tensor] : snapshot.rank_tensors) {
    if (is_divided(tensor)) {
      throw CheckpointError("checkpoint.save",
                            "ranks divide its values, so it is none of a rank's own tensors. Put "
                            "it into a part",
                            {{}, name});
    }
  }
  const std::string own = fmt::format("rank{}", rank_of(group));
  if (!snapshot.rank_tensors.empty()) {
    job.rank_tensors = stage(own + ".safetensors", own, snapshot.rank_tensors, pool);
  }
  job.values = values_text(snapshot.values);
  job.rank_values = values_text(snapshot.rank_values);
}

void stage_shards(const Snapshot& snapshot,
                  SaveJob& job,
                  Writers writers,
                  const comm::Group& group,
                  StagingPool& pool) {
  ShardPlan plan = plan_shards(snapshot, job.error, group, writers == Writers::kAll);
  job.manifest.parts = std::move(plan.parts);
  job.order = std::move(plan.order);
  for (const auto& [part, dict] : plan.own) {
    job.files.push_back(stage(file_name(part, true, group), part, dict, pool));
  }
}

std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

ManifestFile write_staged(const std::string& folder, const StagedFile& file) {
  std::vector<std::span<const std::byte>> pieces = file.data;
  pieces.insert(pieces.begin(), text_bytes(file.layout.head));
  return write_file(folder, file.name, pieces);
}

/// What one rank brings to the manifest.
struct Share {
  std::string error{};
  std::vector<ManifestFile> files{};
  std::vector<ManifestTensor> tensors{};
  /// Files that rank 0 writes for it.
  std::map<std::string, std::string> contents{};
};

nlohmann::json to_json(const Share& share) {
  nlohmann::json json{{"error", share.error},
                      {"files", nlohmann::json::array()},
                      {"tensors", nlohmann::json::array()}};
  for (const ManifestFile& f : share.files) {
    json["files"].push_back({f.name, f.bytes, f.checksum, f.blocks});
  }
  for (const ManifestTensor& t : share.tensors) {
    const IndexRange range = t.pieces.empty() ? IndexRange() : t.pieces.front().range;
    json["tensors"].push_back({t.part,
                               t.name,
                               t.dtype,
                               t.shape,
                               t.file,
                               t.pieces.empty() ? "" : t.pieces.front().file,
                               range.begin,
                               range.end,
                               t.order});
  }
  json["contents"] = nlohmann::json::object();
  for (const auto& [name, text] : share.contents) {
    json["contents"][name] = nlohmann::json::binary({text.begin(), text.end()});
  }
  return json;
}

Share from_json(const nlohmann::json& json) {
  Share share{.error = json.at("error").get<std::string>()};
  for (const nlohmann::json& f : json.at("files")) {
    share.files.push_back({f[0].get<std::string>(),
                           f[1].get<int64_t>(),
                           f[2].get<std::string>(),
                           f[3].get<std::string>()});
  }
  for (const nlohmann::json& t : json.at("tensors")) {
    share.tensors.push_back({t[0].get<std::string>(),
                             t[1].get<std::string>(),
                             t[2].get<std::string>(),
                             t[3].get<std::vector<int64_t>>(),
                             t[4].get<std::string>()});
    if (const auto file = t[5].get<std::string>(); !file.empty()) {
      share.tensors.back().pieces = {{file, {t[6].get<int64_t>(), t[7].get<int64_t>()}}};
      share.tensors.back().order = t[8].get<std::vector<int64_t>>();
    }
  }
  for (const auto& [name, bytes] : json.at("contents").items()) {
    const auto& binary = bytes.get_binary();
    share.contents[name] = std::string(binary.begin(), binary.end());
  }
  return share;
}

/// The files of this rank: written into `folder`, or given to rank 0.
void fill_share(const SaveJob& job, const std::string& folder, int rank, Share& share) {
  const std::string own = fmt::format("rank{}.json", rank);
  const bool writes = job.sharded || rank == 0;
  for (const StagedFile& file : job.files) {
    share.files.push_back(write_staged(folder, file));
    std::ranges::copy(file.tensors, std::back_inserter(share.tensors));
  }
  if (!job.rank_tensors.name.empty()) {
    const StagedFile& file = job.rank_tensors;
    std::ranges::copy(file.tensors, std::back_inserter(share.tensors));
    if (writes) {
      share.files.push_back(write_staged(folder, file));
    } else {
      std::string& content = share.contents[file.name];
      content = file.layout.head;
      for (const std::span<const std::byte> piece : file.data) {
        content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      }
    }
  }
  if (writes) {
    share.files.push_back(write_file(folder, own, job.rank_values));
    os::sync_folder(folder).or_throw<CheckpointError>("checkpoint.save", CheckpointPlace{folder});
  } else {
    share.contents[own] = job.rank_values;
  }
}

/// One entry for each tensor, with all its pieces.
std::vector<ManifestTensor> join_pieces(std::vector<ManifestTensor> all) {
  std::map<std::pair<std::string, std::string>, size_t> place;
  std::vector<ManifestTensor> joined;
  for (ManifestTensor& tensor : all) {
    const auto [known, added] = place.try_emplace({tensor.part, tensor.name}, joined.size());
    if (added) {
      joined.push_back(std::move(tensor));
    } else {
      std::ranges::move(tensor.pieces, std::back_inserter(joined[known->second].pieces));
    }
  }
  for (ManifestTensor& tensor : joined) {
    std::ranges::sort(
        tensor.pieces, {}, [](const ManifestPiece& piece) { return piece.range.begin; });
  }
  return joined;
}

/// Tensors in the order that readers find them, whoever wrote them.
void sort_tensors(const SaveJob& job, std::vector<ManifestTensor>& tensors) {
  std::map<std::pair<std::string, std::string>, size_t> place;
  for (const auto& key : job.order) {
    place.emplace(key, place.size());
  }
  std::ranges::stable_sort(tensors, {}, [&](const ManifestTensor& tensor) {
    const auto known = place.find({tensor.part, tensor.name});
    return known == place.end() ? place.size() : known->second;
  });
}

/// The file that a rank says it wrote is there for this one, too.
void check_there(const std::string& folder, const ManifestFile& file, size_t rank) {
  std::error_code error;
  const auto size = fs::file_size(fs::path(folder) / file.name, error);
  if (error || static_cast<int64_t>(size) != file.bytes) {
    throw CheckpointError("checkpoint.save",
                          fmt::format("rank {} has written {}, which rank 0 does not see. Sharded "
                                      "saving needs a folder that all ranks share",
                                      rank,
                                      file.name),
                          {folder, {}});
  }
}

/// Rank 0's work when all have done theirs.
void finish(const SaveJob& job, std::vector<Share> shares, PendingFolder& folder) {
  Manifest manifest = job.manifest;
  manifest.files.push_back(write_file(folder.path(), "state.json", job.values));
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    Share& share = shares[rank];
    for (ManifestFile& file : share.files) {
      check_there(folder.path(), file, rank);
      manifest.files.push_back(std::move(file));
    }
    for (const auto& [name, content] : share.contents) {
      manifest.files.push_back(write_file(folder.path(), name, content));
    }
    std::ranges::move(share.tensors, std::back_inserter(manifest.tensors));
  }
  manifest.tensors = join_pieces(std::move(manifest.tensors));
  sort_tensors(job, manifest.tensors);
  folder.commit(manifest);
}

/// Runs `step` unless something went wrong before; what goes wrong now is kept.
template <typename Step>
void attempt(std::string& error, Step step) {
  if (!error.empty()) {
    return;
  }
  try {
    step();
  } catch (const std::exception& caught) {
    error = bare(caught);
  }
}

/// Of all ranks in rank order; the first error with its rank.
std::vector<Share> gather_shares(const Share& own, const comm::Group& group, std::string& error) {
  if (size_of(group) == 1) {
    error = own.error;
    return {own};
  }
  std::vector<Share> shares;
  for (const nlohmann::json& json : comm::gather_object(to_json(own), group)) {
    shares.push_back(from_json(json));
    if (error.empty() && !shares.back().error.empty()) {
      error = fmt::format("(rank {}) {}", shares.size() - 1, shares.back().error);
    }
  }
  return shares;
}

std::string agree(const std::string& text, const comm::Group& group) {
  return size_of(group) == 1 ? text : comm::broadcast_object(text, group);
}

}  // namespace

SaveJob make_job(const Snapshot& snapshot,
                 const std::string& directory,
                 const std::string& name,
                 Writers writers,
                 const comm::Group& group,
                 StagingPool& pool) {
  SaveJob job{.directory = directory, .name = name};
  job.sharded = writers != Writers::kFirst && size_of(group) > 1;
  job.manifest.step = snapshot.step;
  job.manifest.epoch = snapshot.epoch;
  job.manifest.score = snapshot.score;
  job.manifest.time = text::utc(std::chrono::system_clock::now());
  job.manifest.world_size = size_of(group);
  job.manifest.library = library_version();
  pool.reset();
  attempt(job.error, [&] { stage_all(snapshot, job, group, pool); });
  if (job.sharded) {  // collective, whatever went wrong here
    std::string error;
    attempt(error, [&] { stage_shards(snapshot, job, writers, group, pool); });
    job.error = job.error.empty() ? error : job.error;
  }
  return job;
}

int64_t write_job(const SaveJob& job, const comm::Group& group) {
  const int rank = rank_of(group);
  std::optional<PendingFolder> folder;
  Share share{.error = job.error};
  if (rank == 0) {
    attempt(share.error, [&] { folder.emplace(job.directory, job.name); });
  }
  const std::string own_path = folder ? folder->path() : "";
  const std::string path = job.sharded ? agree(own_path, group) : own_path;
  const bool goes_on = !job.sharded || !path.empty();
  if (goes_on) {
    attempt(share.error, [&] { fill_share(job, path, rank, share); });
  }
  std::string error;
  std::vector<Share> shares = gather_shares(share, group, error);
  if (rank == 0) {
    attempt(error, [&] { finish(job, std::move(shares), *folder); });
  }
  folder.reset();  // before anybody is told
  error = agree(error, group);
  if (!error.empty()) {
    throw CheckpointError("checkpoint.save", error);
  }
  int64_t bytes = job.rank_tensors.data_bytes();
  for (const StagedFile& file : job.files) {
    bytes += file.data_bytes();
  }
  return bytes;
}

}  // namespace argosy::checkpoint
