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

/// Which ranks write the tensors.
enum class Writers {
  kFirst,    ///< rank 0 alone
  kOfParts,  ///< each its parts of divided ones; rank 0 what all have
  kAll,      ///< as many bytes each, as far as that goes
};

/// One save as the caller's thread prepares it: everything is copied, if the pool does so, and
/// nothing is written.
struct SaveJob {
  std::string directory{};
  std::string name{};
  Manifest manifest{};              ///< without files and tensors
  std::vector<StagedFile> files{};  ///< of this rank, without its rank_tensors
  StagedFile rank_tensors{};        ///< without a name: none
  std::string values{};             ///< the text of state.json
  std::string rank_values{};        ///< the text of rank<k>.json
  /// The order of the tensors of sharded parts. Empty: the order of the files.
  std::vector<std::pair<std::string, std::string>> order{};
  bool sharded = false;
  std::string error{};  ///< an error on this rank so far
};

/// Takes the part of the snapshot that this rank writes.
/// Collective over `group` if not only rank 0 writes. Errors: none thrown; job.error holds them.
[[nodiscard]] SaveJob make_job(const Snapshot& snapshot,
                               const std::string& directory,
                               const std::string& name,
                               Writers writers,
                               const comm::Group& group,
                               StagingPool& pool);

/// Writes the job: rank 0 makes the folder, each rank writes its files, and rank 0 writes the
/// manifest when all files exist.
///
/// Collective over `group`. Returns the bytes that this rank wrote.
/// Errors: CheckpointError, the same on all ranks, and nothing is left behind; CommError.
int64_t write_job(const SaveJob& job, const comm::Group& group);

}  // namespace argosy::checkpoint
