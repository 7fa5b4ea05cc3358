#pragma once

#include <chrono>
#include <string>

#include "argosy/os/fd.h"

namespace argosy::datasets {

/// Keeps other processes from fetching into a folder: one fetches, the others wait until it is
/// done. The kernel takes it back when its process ends, however that happens.
///
///     const FolderLock lock(folder, std::chrono::minutes(5));
///
/// Blocks: while another process holds it. Once a message says whom it waits for; it gives up when
/// the files in the folder have not grown for `patience`.
/// Errors: DataError naming the folder: gave up, cannot write there, no locks on this file system.
class FolderLock final {
 public:
  FolderLock(const std::string& folder, std::chrono::milliseconds patience);
  ~FolderLock() = default;  // closing the file gives the lock back
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  FolderLock(FolderLock&&) = delete;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  os::UniqueFd fd_{};
};

}  // namespace argosy::datasets
