#include "argosy/transport/shm/shm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "argosy/os/pidfd.h"
#include "argosy/os/random.h"
#include "argosy/transport/gloo/host.h"
#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {

/// A process that the others cannot watch has no neighbours: they would wait for it in shared
/// memory after it has died. Kernels before 5.3 and some sandboxes are like that.
std::string neighbourhood_id() {
  std::error_code ignored;
  const std::string users = std::filesystem::read_symlink("/proc/self/ns/user", ignored).string();
  const std::string alone = os::own_pidfd().ok() ? "" : " " + os::random_hex(8);
  return fmt::format("{} {} {}{}", loopback_id(), users, ::geteuid(), alone);
}

std::unique_ptr<Transport> make_shm(std::shared_ptr<rendezvous::Store> store,
                                    int rank,
                                    int size,
                                    const ShmOptions& options) {
  auto transport = std::make_unique<Shm>(std::move(store), rank, size, options);
  transport->connect_all();
  return transport;
}

}  // namespace argosy::transport
