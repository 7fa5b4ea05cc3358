#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/os/fd.h"

namespace argosy::train::detail {

/// One training in its folders at a time: two of them would mix their figures and take each other's
/// checkpoints for their own. Rank 0 makes the folders and holds them; the end of its process,
/// however it comes, lets go. Where a file system has no locks nothing is held, on NFS only against
/// processes of the same host.
class FolderLock final {
 public:
  /// For a training that goes on: the process that it goes on from may still be ending.
  static constexpr std::chrono::milliseconds kPatience{5000};

  /// Several, each once; empty paths count for nothing. `patience`: how long one that another holds
  /// is waited for. Collective.
  /// Errors, on all ranks alike: DataError: the folder cannot be made, another training holds it.
  /// Whatever else stops rank 0 comes out there as it is, and as a DataError on the others.
  FolderLock(const std::vector<std::string>& folders,
             const comm::Group& group,
             std::chrono::milliseconds patience);
  /// The same, with what rank 0 does to hold them.
  using Take = std::function<std::vector<os::UniqueFd>()>;
  FolderLock(const comm::Group& group, const Take& take);

 private:
  std::vector<os::UniqueFd> held_;
};

}  // namespace argosy::train::detail
