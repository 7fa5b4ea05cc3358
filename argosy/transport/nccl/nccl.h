#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/device_queue.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

/// How sums over ranks are made.
enum class NcclMode : uint8_t {
  /// By NCCL, in an order of its own, which depends on the ranks' places; fastest.
  kNative,
  /// In the order of LeafDeal: the bits that every other transport gives. Each rank gets its share
  /// of all ranks' data, adds it and hands the sum on: the bytes are those of a ring.
  kExact,
};

struct NcclOptions {
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< see PeerWatchOptions
  std::vector<int> job_ranks{};              ///< see PeerWatchOptions
  std::string library{};                     ///< a file; empty: see ARGOSY_NCCL_LIBRARY
  /// Of the device that this rank's memory is on. Required, unless it refuses.
  std::shared_ptr<DeviceQueues> queues{};
  /// Why this rank cannot take part: then all ranks get a ConfigError that says so. Empty: it can.
  std::string refusal{};
  /// Asked at each reduction; all ranks must say the same. What NCCL has no operation for is exact
  /// in either mode: bool, bits, averages of integers, minima and maxima of floats, and reductions
  /// over other leaves than the ranks. Empty: native.
  std::function<NcclMode()> mode{};
  /// Hears, on rank 0, which library it is, and what that lacks for its age.
  std::function<void(const std::string& library, const std::vector<std::string>& lacks)> tell{};
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long a rank looks for the culprit when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
  /// A collective this old asks whether a rank has left that it needs.
  std::chrono::milliseconds suspicion = std::chrono::seconds(1);
};

/// Returns a transport over the memory of devices, by NCCL or RCCL. See Transport::queue() for what
/// that changes. A group of one rank needs no library. Messages have no tags: only 0 works.
///
/// Collective: returns when all ranks are connected. Ranks must be on different devices. Two ranks
/// connect with each other when they exchange their first message, in a thread of the transport's.
/// Errors: ConfigError (no library, two ranks on a device, a rank that refuses); TimeoutError
/// naming the ranks that did not come; CommError naming one that died, ranks with other versions,
/// or what NCCL says.
[[nodiscard]] std::unique_ptr<Transport> make_nccl(std::shared_ptr<rendezvous::Store> store,
                                                   int rank,
                                                   int size,
                                                   const NcclOptions& options);

}  // namespace argosy::transport
