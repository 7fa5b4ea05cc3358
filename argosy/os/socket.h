#pragma once

#include <cstdint>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// A TCP port that is ours while this object lives. A server that uses it may come later, perhaps
/// in another process.
///
///     HeldPort port = *HeldPort::hold();
///     export_to_children("MASTER_PORT", port.number());
///
/// The socket is bound on all IPv4 interfaces, carries SO_REUSEADDR and does not listen. A process
/// that binds the port without SO_REUSEADDR is refused, so the kernel never gives the port away. A
/// server that sets SO_REUSEADDR (PyTorch's and Paddle's stores, gRPC, our listen_tcp) can bind and
/// listen. So nobody must find a port, release it and hope. A port counts as free while connections
/// of a former server still fade away (TIME_WAIT, a minute). A port that another HeldPort has is
/// not free: each HeldPort also binds an abstract Unix socket named after its port.
class HeldPort final {
 public:
  /// Holds `port`. 0: the system chooses. Errors: EADDRINUSE; the failure names the port.
  [[nodiscard]] static Result<HeldPort> hold(uint16_t port = 0);
  [[nodiscard]] uint16_t number() const { return number_; }

 private:
  HeldPort(UniqueFd fd, UniqueFd claim, uint16_t number)
      : fd_(std::move(fd)), claim_(std::move(claim)), number_(number) {}
  UniqueFd fd_;
  UniqueFd claim_;  ///< the Unix socket
  uint16_t number_;
};

/// A listening TCP socket. Non-blocking; accept() waits with a deadline.
class Listener final {
 public:
  /// Listens on `host`, a name or an address, IPv4 or IPv6. Port 0: the system chooses.
  /// Errors: the failure names host and port.
  [[nodiscard]] static Result<Listener> listen_tcp(const std::string& host, uint16_t port);

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] int fd() const { return fd_.get(); }  ///< for poll()
  /// Returns the next connection, with TCP_NODELAY, blocking. Errors: ETIMEDOUT at the deadline.
  [[nodiscard]] Result<UniqueFd> accept(const Deadline& deadline) const;

 private:
  Listener(UniqueFd fd, uint16_t port) : fd_(std::move(fd)), port_(port) {}
  UniqueFd fd_;
  uint16_t port_;
};

/// Connects to host:port. Tries each address of the name, and tries again until the deadline while
/// nobody listens there. The socket has TCP_NODELAY and is blocking.
/// Errors: the last reason, and for how long it was tried. A name that does not resolve fails at
/// once.
[[nodiscard]] Result<UniqueFd> connect_tcp(const std::string& host,
                                           uint16_t port,
                                           const Deadline& deadline);

/// Begins to connect to an address, which must not be a name. The socket does not block. It becomes
/// writable when the connection stands or has failed; connect_error() says which.
[[nodiscard]] Result<UniqueFd> begin_connect_tcp(const std::string& address, uint16_t port);
/// Returns the errno with which the connection of begin_connect_tcp() failed. 0: it stands.
[[nodiscard]] int connect_error(int fd);

/// Succeeds when packets get to that host and back: somebody listens at the port, or the host
/// answers that nobody does.
/// Errors: the reason, such as no route, or no answer before the deadline.
[[nodiscard]] Status reach_tcp(const std::string& host, uint16_t port, const Deadline& deadline);

}  // namespace argosy::os
