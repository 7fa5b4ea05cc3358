#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::rendezvous {

struct StoreServerOptions {
  std::string host = "127.0.0.1";  ///< interface to listen on; "0.0.0.0": all of them
  uint16_t port = 0;               ///< 0: the system chooses; port() returns it
  /// Secret that every call must carry, compared in constant time. Empty: calls need none.
  std::string token{};
  Tls tls{};  ///< off: calls are not encrypted
};

/// The store of a job as a gRPC service of this process. The launcher runs it, or rank 0 where
/// there is no launcher.
///
///     auto server = StoreServer::start({.host = "0.0.0.0", .port = 29500, .token = token});
///
/// Ranks that wait cost no thread. A member whose process ends is lost within milliseconds; a
/// member whose machine or process stands still is lost after 10 to 15 s of silence. Lifetime: the
/// destructor answers waiting calls with "store is closing" and stops.
class StoreServer {
 public:
  virtual ~StoreServer() = default;
  StoreServer() = default;
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  StoreServer(StoreServer&&) = delete;
  StoreServer& operator=(StoreServer&&) = delete;

  /// Errors: RendezvousError naming host and port when it cannot listen there.
  [[nodiscard]] static std::unique_ptr<StoreServer> start(const StoreServerOptions& options);

  [[nodiscard]] virtual uint16_t port() const = 0;
  /// Returns the same store without the network, for the process that hosts it.
  [[nodiscard]] virtual std::shared_ptr<Store> local() = 0;
  /// Waits until no member that came through the network is present: nobody then needs the store
  /// any more. Returns false when the deadline passed.
  virtual bool wait_until_members_left(const Deadline& deadline) = 0;
  /// Returns how many calls wait for keys at this moment, for tests and diagnosis.
  [[nodiscard]] virtual size_t waiting_calls() const = 0;
};

/// Returns the libraries of the store in this process: "gRPC 1.51.1, OpenSSL 3.0.19".
[[nodiscard]] std::string library_versions();

}  // namespace argosy::rendezvous
