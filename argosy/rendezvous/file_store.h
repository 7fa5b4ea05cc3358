#pragma once

#include <memory>
#include <string>

#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// Returns a store in a folder that all processes see: on one host, or on a shared file system with
/// locks.
///
/// Waits poll: often at first, then every 10 ms. A process holds a lock while it is a member, and
/// the kernel releases the lock when the process ends; departures() and members() look for that. A
/// child that was forked without exec keeps its parent's lock. Delete the folder between runs, as
/// with PyTorch's file://. join() recognises a folder of a former run. Errors: ConfigError when
/// `path` is a file or a folder of something else; RendezvousError naming path and errno, also when
/// the folder is deleted while it is used.
[[nodiscard]] std::shared_ptr<Store> file_store(const std::string& path);

/// Removes the store's folder if `members` members have left it, none of them is lost and nobody is
/// present. True if it did. Never throws. Does nothing to a store that is not from file_store().
bool remove_finished_file_store(Store& store, size_t members) noexcept;

}  // namespace argosy::rendezvous
