#pragma once

#include <string>
#include <vector>

#include "argosy/comm/init.h"

namespace argosy::comm {

/// How transports of this backend are made. `hosts`: see ConnectOptions; "auto" decides by them for
/// each group by itself.
/// Errors: UsageError listing what exists.
[[nodiscard]] TransportFactory find_backend(const std::string& name, std::vector<int> hosts = {});

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
