#include "argosy/os/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

#include "argosy/os/addresses.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;
using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error == EAI_SYSTEM) {
    return Failure::from_errno("resolve " + host, errno);
  }
  if (error != 0) {
    return Failure{fmt::format("resolve {}: {}", host, ::gai_strerror(error)), 0};
  }
  return AddressList(list, &::freeaddrinfo);
}

Status set_flag(int fd, int level, int option) {
  const int on = 1;
  if (::setsockopt(fd, level, option, &on, sizeof on) != 0) {
    return Failure::from_errno("setsockopt", errno);
  }
  return {};
}

Result<uint16_t> port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Failure::from_errno("getsockname", errno);
  }
  const in_port_t port = address.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                             : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return ntohs(port);
}

Result<UniqueFd> bind_and_listen(const addrinfo& address) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return Failure::from_errno("socket", errno);
  }
  Status reuse = set_flag(fd.get(), SOL_SOCKET, SO_REUSEADDR);
  if (!reuse.ok()) {
    return std::move(reuse).failure();
  }
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    return Failure::from_errno("bind", errno);
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) {
    return Failure::from_errno("listen", errno);
  }
  return fd;
}

Status make_blocking_and_prompt(int fd, int flags_without_nonblock) {
  if (::fcntl(fd, F_SETFL, flags_without_nonblock) != 0) {
    return Failure::from_errno("clear O_NONBLOCK", errno);
  }
  return set_flag(fd, IPPROTO_TCP, TCP_NODELAY);
}

/// A connection to one address that may still be on its way.
Result<UniqueFd> begin_connect(const addrinfo& address) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return Failure::from_errno("socket", errno);
  }
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return Failure::from_errno("connect", errno);
  }
  return fd;
}

/// One attempt at one address.
Result<UniqueFd> try_connect(const addrinfo& address, const Deadline& deadline) {
  Result<UniqueFd> begun = begin_connect(address);
  if (!begun.ok()) {
    return begun;
  }
  UniqueFd fd = *std::move(begun);
  const Result<bool> ready = wait_ready(fd.get(), POLLOUT, deadline);
  if (!ready.ok()) {
    return ready.failure();
  }
  if (const int error = *ready ? connect_error(fd.get()) : ETIMEDOUT; error != 0) {
    return Failure::from_errno("connect", error);
  }
  Status done = make_blocking_and_prompt(fd.get(), 0);
  if (!done.ok()) {
    return std::move(done).failure();
  }
  return fd;
}

/// A socket whose name only one process of this network namespace can have; none: another has it.
UniqueFd claim_port(uint16_t port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("argosy/port/{}", port);
  std::ranges::copy(text, name.sun_path + 1);  // after a 0: no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool ours = fd && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), size) == 0;
  return ours ? std::move(fd) : UniqueFd();
}

}  // namespace

Result<HeldPort> HeldPort::hold(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) {
    return Failure::from_errno("socket", errno);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const auto bind = [&] {
    return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  };
  // SO_REUSEADDR comes after bind: a port is taken only if nobody at all has it, not even another
  // holder. From then on those who ask for SO_REUSEADDR may share it.
  const bool alone = bind();
  const int error = errno;
  Status reuse = set_flag(fd.get(), SOL_SOCKET, SO_REUSEADDR);
  if (!reuse.ok()) {
    return std::move(reuse).failure();
  }
  // With it, bind succeeds beside fading connections and other holders, never beside a listener.
  if (!alone && (error != EADDRINUSE || port == 0 || !bind())) {
    return Failure::from_errno(fmt::format("bind port {}", port), error);
  }
  const Result<uint16_t> number = port_of(fd.get());
  if (!number.ok()) {
    return number.failure();
  }
  UniqueFd claim = claim_port(*number);
  if (!alone && !claim) {
    return Failure::from_errno(fmt::format("bind port {}", port), EADDRINUSE);
  }
  return HeldPort(std::move(fd), std::move(claim), *number);
}

Result<Listener> Listener::listen_tcp(const std::string& host, uint16_t port) {
  Result<AddressList> addresses = resolve(host, port, AI_PASSIVE);
  if (!addresses.ok()) {
    return std::move(addresses).failure();
  }
  Failure why{"no address", 0};
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    Result<UniqueFd> fd = bind_and_listen(*address);
    if (!fd.ok()) {
      why = std::move(fd).failure();
      continue;
    }
    const Result<uint16_t> number = port_of(fd->get());
    if (!number.ok()) {
      return number.failure();
    }
    return Listener(*std::move(fd), *number);
  }
  return std::move(why).because("listen on " + host_port(host, port));
}

Result<UniqueFd> Listener::accept(const Deadline& deadline) const {
  while (true) {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd) {
      Status prompt = set_flag(fd.get(), IPPROTO_TCP, TCP_NODELAY);
      if (!prompt.ok()) {
        return std::move(prompt).failure();
      }
      return fd;
    }
    // ECONNABORTED: the peer left before we looked; the next one may be fine.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      return Failure::from_errno("accept", errno);
    }
    const Result<bool> ready = wait_ready(fd_.get(), POLLIN, deadline);
    if (!ready.ok()) {
      return ready.failure();
    }
    if (!*ready) {
      return Failure::from_errno(fmt::format("accept on port {}", port_), ETIMEDOUT);
    }
  }
}

Status reach_tcp(const std::string& host, uint16_t port, const Deadline& deadline) {
  Result<AddressList> addresses = resolve(host, port, 0);
  if (!addresses.ok()) {
    return std::move(addresses).failure();
  }
  Failure why{"no address", 0};
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    Result<UniqueFd> fd = try_connect(*address, deadline);
    if (fd.ok() || fd.failure().error_number == ECONNREFUSED) {
      return {};
    }
    why = std::move(fd).failure();
  }
  return why;
}

Result<UniqueFd> begin_connect_tcp(const std::string& address, uint16_t port) {
  Result<AddressList> addresses = resolve(address, port, AI_NUMERICHOST);
  return addresses.ok() ? begin_connect(**addresses) : std::move(addresses).failure();
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Result<UniqueFd> connect_tcp(const std::string& host, uint16_t port, const Deadline& deadline) {
  const auto start = Deadline::Clock::now();
  Result<AddressList> addresses = resolve(host, port, 0);
  if (!addresses.ok()) {
    return std::move(addresses).failure();
  }
  Failure why{"no address", 0};
  auto pause = 1ms;  // doubles up to 100 ms: a server that is just starting is met soon
  while (true) {
    for (const addrinfo* address = addresses->get(); address != nullptr;
         address = address->ai_next) {
      Result<UniqueFd> fd = try_connect(*address, deadline);
      if (fd.ok()) {
        return fd;
      }
      why = std::move(fd).failure();
    }
    if (deadline.remaining() <= pause) {
      const std::chrono::duration<double> tried = Deadline::Clock::now() - start;
      return std::move(why).because(
          fmt::format("connect to {} (tried for {:.1f} s)", host_port(host, port), tried.count()));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(100));
  }
}

}  // namespace argosy::os
