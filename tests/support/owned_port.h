#pragma once

#include <cstdint>

namespace argosy::test {

/// A port on 127.0.0.1 that is ours from the moment it is chosen: bound, never listened on, so that
/// a server with SO_REUSEADDR may still listen there and nobody else is given it.
class OwnedPort final {
 public:
  OwnedPort();
  ~OwnedPort();
  OwnedPort(const OwnedPort&) = delete;
  OwnedPort& operator=(const OwnedPort&) = delete;
  OwnedPort(OwnedPort&&) = delete;
  OwnedPort& operator=(OwnedPort&&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

}  // namespace argosy::test
