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
  std::vector<int> world_ranks{};            ///< of the members, see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< where the ranks of the job are members; or none
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long to look for who is to blame when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
  /// How long a rank looks for the others' data, letting others have its core between two looks,
  /// before it sleeps.
  std::chrono::microseconds spin{50};
  /// How often a rank that sleeps asks whether a process has ended: processes that end wake nobody.
  std::chrono::milliseconds look{50};
};

/// Equal on two processes exactly when they can share memory by make_shm(): the same boot of the
/// same kernel, the same network namespace and the same user.
[[nodiscard]] std::string neighbourhood_id();

/// The most ranks of one group.
inline constexpr int kMostShmRanks = 128;

/// A transport through memory that the ranks of one host share: the fastest there. The memory has
/// no name in any file system (the size of /dev/shm does not matter) and goes with the last
/// process, however that ends. A rank that dies is noticed by the kernel's word on its process, and
/// named within a second. A send() is over once its bytes lie in shared memory, whether or not the
/// receiver looks.
///
/// Collective: returns when all ranks are connected.
/// Errors: ConfigError when a rank is elsewhere (another host, network namespace or user);
/// TimeoutError naming the ranks that did not come; CommError naming one that died.
[[nodiscard]] std::unique_ptr<Transport> make_shm(std::shared_ptr<rendezvous::Store> store,
                                                  int rank,
                                                  int size,
                                                  const ShmOptions& options = {});

}  // namespace argosy::transport
