#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/comm/group.h"
#include "argosy/train/folder_lock.h"
#include "argosy/train/options.h"

namespace argosy::train::detail {

/// Returns the folder in which fit() keeps checkpoints: save_dir, else the one in run_dir, else
/// that of the first ModelCheckpoint. Empty: none.
[[nodiscard]] std::string checkpoint_folder(const FitOptions& options);

/// Whose checkpoints a fit() saves.
enum class Keeps : uint8_t {
  kNone,
  kOwn,      ///< fit()'s, as FitCheckpointOptions say; perhaps those of callbacks, too
  kCallback  ///< only those of a ModelCheckpoint in the callbacks
};
[[nodiscard]] Keeps who_keeps(const FitOptions& options);

/// What a fit() has found before it deals its samples.
struct FitStart {
  std::optional<FolderLock> lock{};         ///< on its folders, if it looked for a checkpoint
  std::optional<std::string> checkpoint{};  ///< from which it resumes
  bool asked = false;                       ///< somebody asked for the number of virtual ranks
};
/// Begins a fit(): looks for the checkpoint from which the options ask to resume, and sets the
/// number of virtual ranks and of threads, as FitOptions::virtual_ranks says. `dealt_to` is the
/// number of virtual ranks that a loader knows; nullopt for a data set. Rank 0 looks, with the
/// folders locked, and logs what it passed over. Collective.
/// Errors: UsageError for a resume without a folder; CheckpointError if the options want a
/// checkpoint and the folder has no whole one; what FolderLock throws.
[[nodiscard]] FitStart start(const FitOptions& options,
                             std::optional<int64_t> dealt_to,
                             const comm::Group& group);
/// Locks the folders unless that is done. Collective.
void lock_folders(FitStart& start, const FitOptions& options, const comm::Group& group);

/// The part of a checkpoint that one rank needs.
struct Share {
  checkpoint::Snapshot snapshot{};
  /// Values of ranks that wrote the checkpoint and no longer exist. Of n ranks, rank r takes over
  /// those of r + n, r + 2n and so on.
  std::vector<nlohmann::ordered_json> gone{};
};

/// Reads this rank's share. Collective: if one rank cannot read, all throw. Rank 0 warns of another
/// layout.
[[nodiscard]] Share read_together(const std::string& path, const comm::Group& group);

}  // namespace argosy::train::detail
