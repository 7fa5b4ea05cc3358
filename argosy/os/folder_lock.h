#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "argosy/os/fd.h"

namespace argosy::os {

/// Locks the open file against other processes, without waiting. False: another process holds it.
/// Closing the descriptor, or the end of the process, gives it back.
/// Errors: errno of flock(2): the file system has no locks, for instance.
[[nodiscard]] Result<bool> try_flock(const UniqueFd& fd);

struct FolderLockOptions {
  /// The file in the folder that is locked. It is made if need be, and its holder writes its name
  /// into it, for processes on other machines too. Empty: the folder itself, where nothing is left.
  std::string file{};
  /// How long a lock that another holds is waited for.
  std::chrono::milliseconds patience{0};
  /// The patience begins anew whenever the files in the folder grow: its holder gets on.
  bool while_it_grows = false;
  /// Where the file system has no locks: an error, or as if the lock were held.
  bool needed = true;
  /// Gets the holder's name, once, before waiting.
  std::function<void(const std::string& holder)> on_wait{};
};

/// Holds a folder for this process: the lock, which closing gives back.
/// Errors: EWOULDBLOCK: another process held it all the time; `what` is its name, "process 7 on
/// HOST" or "process 7 (PROGRAM)". Else what open(2) or flock(2) say.
[[nodiscard]] Result<UniqueFd> lock_folder(const std::string& folder,
                                           const FolderLockOptions& options = {});

}  // namespace argosy::os
