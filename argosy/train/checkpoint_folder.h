#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/comm/group.h"
#include "argosy/train/options.h"

namespace argosy::train::detail {

/// Where fit() keeps checkpoints: save_dir, else in run_dir, else where the first ModelCheckpoint
/// does; empty: nowhere.
[[nodiscard]] std::string checkpoint_folder(const FitOptions& options);

/// The checkpoint that options ask to go on from; nullopt: none. Rank 0 looks and says what it
/// passed over. Collective.
/// Errors: UsageError: resume without a folder; CheckpointError: none where one must be.
[[nodiscard]] std::optional<std::string> checkpoint_to_resume(const FitOptions& options,
                                                              const comm::Group& group);

/// Moves checkpoints in `folder` of later steps than `step`, at which a training begins, into a new
/// folder `earlier-<n>` in it, and says so in the log: they are another training's, or damaged ones
/// that were passed over, and neither count among the newest nor are resumed from. Only those that
/// fit() has named.
void set_aside_later(const std::string& folder, int64_t step);

/// What a rank needs of a checkpoint.
struct Share {
  checkpoint::Snapshot snapshot{};
  /// Values of ranks that wrote it and are there no more: of n ranks, rank r has those of r + n,
  /// r + 2n and so on.
  std::vector<nlohmann::ordered_json> gone{};
};

/// What makes the sums of ranks of `group` other ones than those of the ranks that wrote a
/// checkpoint, in words: "written by 4 ranks, 2 + 2 on 2 hosts, read by 4 ranks on one host".
/// Empty: nothing does, or the checkpoint does not say where its ranks were.
[[nodiscard]] std::string other_layout(const checkpoint::Manifest& manifest,
                                       const std::vector<int>& hosts);

/// Collective: what one rank cannot read is an error of all. Rank 0 warns of another layout.
[[nodiscard]] Share read_together(const std::string& path, const comm::Group& group);

}  // namespace argosy::train::detail
