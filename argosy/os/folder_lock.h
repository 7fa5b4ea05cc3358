#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "argosy/os/fd.h"

namespace argosy::os {

/// Locks the open file against other processes, without waiting. False: another process holds it.
/// The lock is released when the descriptor is closed or the process ends.
/// Errors: errno of flock(2), for instance because the file system has no locks.
[[nodiscard]] Result<bool> try_flock(const UniqueFd& fd);

struct FolderLockOptions {
  /// The file in the folder that is locked. It is created if needed. The holder writes its name
  /// into it, so that processes on other machines can read it. Empty: the folder itself is locked,
  /// and nothing is left in it.
  std::string file{};
  /// How long to wait for a lock that another process holds.
  std::chrono::milliseconds patience{0};
  /// Restarts the patience whenever the files in the folder grow, because its holder then makes
  /// progress.
  bool while_it_grows = false;
  /// What happens on a file system without locks. True: an error. False: as if the lock were held.
  bool needed = true;
  /// Called once with the holder's name, before waiting.
  std::function<void(const std::string& holder)> on_wait{};
};

/// Locks a folder for this process. Closing the returned descriptor releases the lock.
/// Errors: EWOULDBLOCK when another process held the lock all the time; `what` is then its name,
/// "process 7 on HOST" or "process 7 (PROGRAM)". Else the errno of open(2) or flock(2).
[[nodiscard]] Result<UniqueFd> lock_folder(const std::string& folder,
                                           const FolderLockOptions& options = {});

}  // namespace argosy::os
