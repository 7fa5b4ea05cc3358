#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/os/fd.h"

namespace argosy::train::detail {

/// Keeps a second training out of a training's folders. Two of them would mix their figures and
/// take each other's checkpoints for their own.
/// Rank 0 makes the folders and locks them. The locks end with its process, however it ends. A file
/// system without locks protects nothing; NFS protects only against processes of the same host.
class FolderLock final {
 public:
  /// For a resumed training: the process that it replaces may still be ending.
  static constexpr std::chrono::milliseconds kPatience{5000};

  /// Locks several folders, each once, and ignores empty paths. `patience` is how long it waits for
  /// a folder that another training holds. Collective.
  /// Errors: DataError, on all ranks alike, if a folder cannot be made or another training holds
  /// it. Any other exception of rank 0 passes unchanged there and is a DataError on the other
  /// ranks.
  FolderLock(const std::vector<std::string>& folders,
             const comm::Group& group,
             std::chrono::milliseconds patience);
  /// The same, with the function by which rank 0 takes the locks.
  using Take = std::function<std::vector<os::UniqueFd>()>;
  FolderLock(const comm::Group& group, const Take& take);

 private:
  std::vector<os::UniqueFd> held_;
};

}  // namespace argosy::train::detail
