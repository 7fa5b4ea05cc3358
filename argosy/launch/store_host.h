#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace argosy::launch {

/// The store that the launcher hosts for its ranks, as far as the launcher looks at it. It lives as
/// long as this object.
class StoreHost {
 public:
  virtual ~StoreHost() = default;
  StoreHost() = default;
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;
  StoreHost(StoreHost&&) = delete;
  StoreHost& operator=(StoreHost&&) = delete;

  [[nodiscard]] virtual uint16_t port() const = 0;
};

/// Starts the store; every caller must show `token`.
using StoreFactory = std::function<std::unique_ptr<StoreHost>(const std::string& token)>;

/// The gRPC store of room rendezvous on a free port of the loopback interface.
/// Errors: RendezvousError.
[[nodiscard]] std::unique_ptr<StoreHost> host_store(const std::string& token);

}  // namespace argosy::launch
