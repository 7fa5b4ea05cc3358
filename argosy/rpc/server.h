#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "argosy/rendezvous/admission.h"
#include "argosy/rendezvous/tls.h"
#include "argosy/rpc/functions.h"
#include "argosy/rpc/landing.h"
#include "argosy/rpc/lane_server.h"
#include "argosy/rpc/served_call.h"
#include "argosy/rpc/shared_line.h"

namespace grpc {
class Server;
}

namespace argosy::rpc {

/// The only method, which names the function in its message.
inline constexpr const char* kMethod = "/argosy.rpc.Agent/Call";
/// The trailing metadata of a call that the server did not start.
inline constexpr const char* kRefused = "argosy-refused";

struct ServerOptions {
  std::string host{};  ///< an address of this host, on which it listens
  std::string token{};
  rendezvous::Tls tls{};
  int threads = 16;
  size_t most_queued_calls = 10000;
  size_t largest_call_bytes = 0;
  size_t shared_memory_bytes = 0;  ///< see SharedLine; 0: none is shared
};

/// Runs functions for whoever knows the job's token. Internal to the room.
class Server final {
 public:
  /// Errors: RendezvousError when it cannot listen.
  Server(const ServerOptions& options, Functions functions);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;

  [[nodiscard]] uint16_t port() const { return static_cast<uint16_t>(port_); }
  /// nullptr: no memory is shared.
  [[nodiscard]] Landing* landing() const { return landing_.get(); }

 private:
  class Service;
  class GrpcCall;

  /// Serves the lane of that name, if its caller has brought it.
  void open_lane(const std::string& id, const std::shared_ptr<SharedLine>& line);

  const ServerOptions options_;
  const std::unique_ptr<Landing> landing_;
  const rendezvous::wire::Admission admission_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::mutex lanes_mutex_;
  std::map<std::string, std::unique_ptr<LaneServer>> lanes_{};
  bool closing_ = false;
  std::unique_ptr<Service> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace argosy::rpc
