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
  std::vector<int> world_ranks{};            ///< see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< see PeerWatchOptions
  std::vector<int> job_ranks{};              ///< see PeerWatchOptions
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  ///< for the ranks to meet
  /// How long a rank looks for the culprit when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

/// Returns transports between threads of one process, which read each other's memory. They serve
/// tests, because ThreadSanitizer sees all of it, and examples without a network. Bits, errors and
/// the naming of culprits are those of the other transports.
///
///     auto ranks = in_process_transports(4);
///     // ranks[r] goes to thread r
[[nodiscard]] std::vector<std::unique_ptr<Transport>> in_process_transports(
    int size, const InProcessOptions& options = {});

/// Returns the transport of one rank. The ranks meet in `store`: an in_process_store(), or a prefix
/// of one that no other transport uses.
///
/// Collective: returns when all ranks have called it.
/// Errors: TimeoutError naming the ranks that did not come.
[[nodiscard]] std::unique_ptr<Transport> make_in_process(std::shared_ptr<rendezvous::Store> store,
                                                         int rank,
                                                         int size,
                                                         const InProcessOptions& options = {});

/// Simulates that the process of this rank was killed, for tests of what the others then see.
/// Errors: UsageError when `transport` is of another kind.
void lose(std::unique_ptr<Transport> transport);

}  // namespace argosy::transport
