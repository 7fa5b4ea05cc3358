#pragma once

#include <cstdint>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// A TCP port that is ours for as long as this object lives, for a server that comes later, maybe
/// in another process.
///
///     HeldPort port = *HeldPort::hold();
///     export_to_children("MASTER_PORT", port.number());
///
/// The socket is bound on all IPv4 interfaces, carries SO_REUSEADDR and does not listen. Who binds
/// the port without SO_REUSEADDR is refused, and so the kernel never gives it away; a server that
/// sets SO_REUSEADDR (PyTorch's and Paddle's stores, gRPC, our listen_tcp) binds and listens. So a
/// port needs never be found, released and hoped for. A port on which connections of a former
/// server still fade away (TIME_WAIT, a minute) is free; one that another HeldPort has is not: each
/// binds an abstract Unix socket named after its port too.
class HeldPort final {
 public:
  /// 0: the system chooses. Errors: EADDRINUSE names the port.
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
  /// `host` is a name or address, IPv4 or IPv6; port 0: the system chooses.
  /// Errors: the failure names host and port.
  [[nodiscard]] static Result<Listener> listen_tcp(const std::string& host, uint16_t port);

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] int fd() const { return fd_.get(); }  ///< for poll()
  /// The next connection, with TCP_NODELAY, blocking. Errors: ETIMEDOUT at the deadline.
  [[nodiscard]] Result<UniqueFd> accept(const Deadline& deadline) const;

 private:
  Listener(UniqueFd fd, uint16_t port) : fd_(std::move(fd)), port_(port) {}
  UniqueFd fd_;
  uint16_t port_;
};

/// Connects to host:port, trying each address of the name, and again while nobody listens there,
/// until the deadline. The socket has TCP_NODELAY and is blocking.
/// Errors: the last reason and how long it was tried; a name that does not resolve fails at once.
[[nodiscard]] Result<UniqueFd> connect_tcp(const std::string& host,
                                           uint16_t port,
                                           const Deadline& deadline);

/// Begins to connect to an address (no name). The socket does not block; it is writable when the
/// connection stands or has failed: connect_error() says which.
[[nodiscard]] Result<UniqueFd> begin_connect_tcp(const std::string& address, uint16_t port);
/// Why the connection of a socket from begin_connect_tcp() failed: an errno; 0: it stands.
[[nodiscard]] int connect_error(int fd);

/// Do packets get to that host and back? They do where somebody listens at the port, and also where
/// the host answers that nobody does. Errors: why not: no route, no answer before the deadline.
[[nodiscard]] Status reach_tcp(const std::string& host, uint16_t port, const Deadline& deadline);

}  // namespace argosy::os
