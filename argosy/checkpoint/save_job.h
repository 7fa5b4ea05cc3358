#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/staging.h"
#include "argosy/comm/group.h"

// Internal to the room.
namespace argosy::checkpoint {

/// One save, as far as the caller's thread brings it: all is copied, nothing is written.
struct SaveJob {
  std::string directory{};
  std::string name{};
  Manifest manifest{};              ///< without files and tensors
  std::vector<StagedFile> files{};  ///< of this rank, without its rank_tensors
  StagedFile rank_tensors{};        ///< no name: there are none
  std::string values{};             ///< the text of state.json
  std::string rank_values{};        ///< of rank<k>.json
  /// The order of the tensors of sharded parts; empty: as they come.
  std::vector<std::pair<std::string, std::string>> order{};
  bool sharded = false;
  std::string error{};  ///< what went wrong on this rank already
};

/// Copies what this rank writes of the snapshot.
/// Collective over `group` where the job is sharded. Errors: none; job.error has them.
[[nodiscard]] SaveJob make_job(const Snapshot& snapshot,
                               const std::string& directory,
                               const std::string& name,
                               bool sharded,
                               const comm::Group& group,
                               StagingPool& pool);

/// Writes it: rank 0 makes the folder, each rank its files, rank 0 the manifest when all are there.
///
/// Collective over `group`. Returns the bytes that this rank wrote.
/// Errors: CheckpointError, the same on all ranks, and nothing is left behind; CommError.
int64_t write_job(const SaveJob& job, const comm::Group& group);

}  // namespace argosy::checkpoint
