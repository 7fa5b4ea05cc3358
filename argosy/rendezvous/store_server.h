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
  std::string host = "127.0.0.1";  ///< interface to listen on; "0.0.0.0" for all
  uint16_t port = 0;               ///< 0: the system chooses; port() tells
  /// Secret that every call must carry, compared in constant time. Empty: none is asked for.
  std::string token{};
  Tls tls{};  ///< off: calls are not encrypted
};

/// The store of a job as a gRPC service, in this process: in the launcher, or in rank 0 where there
/// is no launcher.
///
///     auto server = StoreServer::start({.host = "0.0.0.0", .port = 29500, .token = token});
///
/// 512 ranks that wait cost no thread. A member is lost when its process ends (seen within
/// milliseconds), or when its machine or process stands still: after 10 to 15 s of silence.
/// Lifetime: the destructor answers waiting calls with "store is closing" and stops.
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
  /// The same store, without the network, for the process that hosts it.
  [[nodiscard]] virtual std::shared_ptr<Store> local() = 0;
  /// Waits until no member that announced itself through the network is present, so that nobody
  /// loses the store who still needs it. False: the deadline passed.
  virtual bool wait_until_members_left(const Deadline& deadline) = 0;
  /// Calls that wait for keys at this moment; for tests and diagnosis.
  [[nodiscard]] virtual size_t waiting_calls() const = 0;
};

/// A client of the store at host:port. Waits for the server until the deadline.
/// Errors: RendezvousError (unreachable: names host, port and what was tried); RefusedError (token
/// refused, certificates that do not fit, TLS on one side only where that can be told).
[[nodiscard]] std::shared_ptr<Store> connect_store(const std::string& host,
                                                   uint16_t port,
                                                   const std::string& token,
                                                   const Deadline& deadline,
                                                   const Tls& tls = {});

/// "gRPC 1.51.1, OpenSSL 3.0.19": what the store is made of, in this process.
[[nodiscard]] std::string library_versions();

}  // namespace argosy::rendezvous
