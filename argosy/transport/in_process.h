#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

struct InProcessOptions {
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< of the members, see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< where the ranks of the job are members; or none
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  ///< for the ranks to meet
  /// How long to look for who is to blame when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

/// A transport between threads of one process: ranks read each other's memory directly. For tests
/// (ThreadSanitizer sees all of it) and for examples without a network. Same bits, errors and
/// naming of culprits as the others.
///
///     auto ranks = in_process_transports(4);
///     // ranks[r] goes to thread r
[[nodiscard]] std::vector<std::unique_ptr<Transport>> in_process_transports(
    int size, const InProcessOptions& options = {});

/// The same, one rank at a time, meeting in `store` (an in_process_store(), or a prefix of one that
/// no other transport uses). Collective: returns when all ranks have called it.
/// Errors: TimeoutError naming the ranks that did not come.
[[nodiscard]] std::unique_ptr<Transport> make_in_process(std::shared_ptr<rendezvous::Store> store,
                                                         int rank,
                                                         int size,
                                                         const InProcessOptions& options = {});

/// Simulates that the process of this rank was killed: for tests of what the others then see.
/// Errors: UsageError when it is another kind of transport.
void lose(std::unique_ptr<Transport> transport);

}  // namespace argosy::transport
