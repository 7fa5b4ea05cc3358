#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

struct ShmOptions {
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< see PeerWatchOptions
  std::vector<int> job_ranks{};              ///< see PeerWatchOptions
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long a rank looks for the culprit when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
  /// How long a rank looks for the others' data before it sleeps. Between two looks it yields its
  /// core.
  std::chrono::microseconds spin{50};
  /// How often a rank that sleeps asks whether a process has ended. A process that ends wakes
  /// nobody.
  std::chrono::milliseconds look{50};
};

/// The most ranks of one group.
inline constexpr int kMostShmRanks = 128;

/// Returns a transport through memory that the ranks of one host share. It is the fastest one
/// there. The memory has no name in any file system, so the size of /dev/shm does not matter, and
/// it goes away with the last process, however that ends. The kernel tells when the process of a
/// rank has ended; the others name that rank within a second. A send() is over once its bytes lie
/// in shared memory, whether or not the receiver has asked for them.
///
/// Collective: returns when all ranks are connected.
/// Errors: ConfigError when a rank has another host, network namespace or user;
/// TimeoutError naming the ranks that did not come; CommError naming one that died.
[[nodiscard]] std::unique_ptr<Transport> make_shm(std::shared_ptr<rendezvous::Store> store,
                                                  int rank,
                                                  int size,
                                                  const ShmOptions& options = {});

}  // namespace argosy::transport
