#pragma once

#include <memory>
#include <string>

#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// A store in a folder that all processes see; for one host or a shared file system with locks.
///
/// Waits poll, first often, then each 10 ms. The death of a member is noticed when somebody asks
/// for departures() or members(): its process held a lock that the kernel has let go of. (A child
/// forked without exec keeps its parent's lock.)
/// Delete the folder between runs, as with PyTorch's file://; join.h tells a stale one.
/// Errors: ConfigError when `path` is a file or a folder of something else; RendezvousError naming
/// path and errno, also when the folder is deleted while it is used.
[[nodiscard]] std::shared_ptr<Store> file_store(const std::string& path);

/// Removes the store's folder if `members` members have left it, none of them lost, and nobody is
/// present: the last one of a job turns out the light. Returns whether it did. Never throws.
/// `store` must come from file_store(); others are left alone.
bool remove_finished_file_store(Store& store, size_t members) noexcept;

}  // namespace argosy::rendezvous
