#pragma once

#include <memory>

#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// Simulates, on an in_process_store(), that the process of this member was killed: the member
/// becomes a lost departure that keeps its last note.
///
///     auto presence = store->announce("rank/1", deadline);
///     lose(std::move(presence));
///     EXPECT_TRUE(store->departures("rank/", deadline).at(0).lost);
///
/// Errors: UsageError when `presence` is of another kind of store.
void lose(std::unique_ptr<Presence> presence);

}  // namespace argosy::rendezvous
