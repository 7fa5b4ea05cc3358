#pragma once

#include <cstdint>
#include <vector>

#include "argosy/transport/leaf_deal.h"

// Internal to the room.
namespace argosy::transport {

/// Cuts `count` elements into a share for each rank, which adds them and sends the sum to the
/// others. Returns where the shares end. A rank with m of all nodes and the share s sends
/// m (1 − s) + s (ranks − 1) times the data; the most that one rank sends is as little as can be.
/// Equal shares where all ranks have equally many nodes.
[[nodiscard]] std::vector<int64_t> ends_of_shares(const LeafDeal& deal, int64_t count);

}  // namespace argosy::transport
