#pragma once

#include <string>

#include "argosy/comm/group.h"
#include "argosy/os/fd.h"

namespace argosy::train::detail {

/// One training in a folder at a time: two of them would mix their figures and take each other's
/// checkpoints for their own. Rank 0 makes the folder and holds it; the end of its process, however
/// it comes, lets go. Nothing is held where the file system has no locks.
class FolderLock final {
 public:
  /// Nothing for an empty path. Collective.
  /// Errors, on all ranks alike: DataError: the folder cannot be made; UsageError: another training
  /// holds it.
  FolderLock(const std::string& folder, const comm::Group& group);

 private:
  os::UniqueFd held_;
};

}  // namespace argosy::train::detail
