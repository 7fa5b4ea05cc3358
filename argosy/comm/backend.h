#pragma once

#include <string>
#include <vector>

#include "argosy/comm/init.h"

namespace argosy::comm {

/// How transports of this backend are made. `hosts`: see ConnectOptions; "auto" decides by them for
/// each group by itself.
/// Errors: UsageError listing what exists.
[[nodiscard]] TransportFactory find_backend(const std::string& name, std::vector<int> hosts = {});

/// How a group brings what devices have from rank to rank.
enum class ForDevices {
  kThroughHost,  ///< copied to the host's memory and back
  kNcclIfThere,  ///< by NCCL where all ranks have it, else through the host
  kNccl,
};

/// What a name of InitOptions::backend asks for.
struct Backends {
  std::string host = "auto";  ///< for find_backend()
  ForDevices devices = ForDevices::kNcclIfThere;

  /// "auto", "gloo", "nccl", "cpu:gloo,cuda:nccl". Errors: UsageError listing what exists.
  [[nodiscard]] static Backends parse(const std::string& name);
};

/// How transports of devices' memory are made. They are nullptr, on every rank, where it is not to
/// be and not all ranks have NCCL and devices that it can use.
/// Errors: ConfigError for a value of ARGOSY_NCCL_MODE that means nothing.
[[nodiscard]] TransportFactory device_backend(ForDevices devices);

/// What "auto" means for a group, and why.
struct BackendChoice {
  std::string backend{};     ///< "shm", "hierarchical", "gloo"
  std::string reason{};      ///< "all 4 ranks are on one host"
  std::vector<int> hosts{};  ///< of the members, where they are known
};
/// `world_ranks`: of the group's members; empty: 0 to `size` - 1.
[[nodiscard]] BackendChoice choose_backend(int size,
                                           const std::vector<int>& world_ranks,
                                           const std::vector<int>& hosts);

}  // namespace argosy::comm
