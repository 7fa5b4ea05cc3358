#pragma once

#include <string>

#include "argosy/launch/nodes/meeting.h"
#include "argosy/launch/options.h"

namespace argosy::launch {

/// Where this node meets the others, and which node it is.
struct Place {
  Meeting meeting{};
  std::string address{};  ///< the address at which the others reach this node
  int wanted_rank = -1;   ///< -1: any
  std::string warning{};  ///< a warning for the user; "": none
};

/// Settles what `options` leave open, by this machine's addresses: whether this node hosts the
/// meeting, and its own address.
///
/// The node that is given node rank 0 hosts it. Without node ranks, the node with the address of
/// the meeting does.
/// Errors: ConfigError when a name has no address; when none of --ips is this node's; when the name
/// of the hosting node means the loopback here, which other nodes could not reach.
[[nodiscard]] Place find_place(const NodeOptions& options, const std::string& token);

}  // namespace argosy::launch
