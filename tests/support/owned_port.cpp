#include "tests/support/owned_port.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace argosy::test {

OwnedPort::OwnedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (fd_ < 0 || ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd_, generic, size) != 0 || ::getsockname(fd_, generic, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot bind a port");
  }
  port_ = ntohs(address.sin_port);
}

OwnedPort::~OwnedPort() {
  ::close(fd_);
}

}  // namespace argosy::test
