#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"

namespace argosy::rendezvous {

/// A client of PyTorch's TCPStore, which torchrun keeps at MASTER_ADDR:MASTER_PORT. It knows only
/// as much of the protocol as it needs to leave a value there for the other ranks. Make one call at
/// a time.
/// Source: PyTorch's torch/csrc/distributed/c10d/TCPStoreBackend (commands, their order).
class TcpStore final {
 public:
  /// Connects. Waits until somebody listens there.
  /// Errors: RendezvousError naming host and port when nobody listens before the deadline, or when
  /// what listens does not answer as a TCPStore.
  TcpStore(const std::string& host, uint16_t port, const Deadline& deadline);

  /// Sets a key. Returns when others can read it.
  void set(std::string_view key, std::string_view value, const Deadline& deadline);
  /// Waits until somebody has set `key`. Errors: TimeoutError naming the key.
  [[nodiscard]] std::string get(std::string_view key, const Deadline& deadline);

 private:
  void ping(std::string message, const Deadline& deadline);
  void send(std::string_view message, const Deadline& deadline);
  [[nodiscard]] std::string receive(size_t bytes, const Deadline& deadline);
  template <typename T>
  [[nodiscard]] T receive_number(const Deadline& deadline);
  [[noreturn]] void fail(const std::string& what) const;

  std::string place_;      ///< "host:port", for messages
  bool answered_ = false;  ///< it is a TCPStore
  os::UniqueFd fd_;
};

}  // namespace argosy::rendezvous
