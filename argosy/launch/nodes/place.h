#pragma once

#include <string>

#include "argosy/launch/nodes/meeting.h"
#include "argosy/launch/options.h"

namespace argosy::launch {

/// Where this node meets the others, and as whom.
struct Place {
  Meeting meeting{};
  std::string address{};  ///< this node's, as the others reach it
  int wanted_rank = -1;   ///< -1: any
  std::string warning{};  ///< for the user; "": none
};

/// Settles what `options` leave open by a look at this machine's addresses: whether it is the one
/// that hosts the meeting, and its own address.
///
/// Who is given node rank 0 hosts it; without node ranks, who has the address of the meeting.
/// Errors: ConfigError: a name without address; none of --ips is this node's; a name of the hosting
/// node that means the loopback here, where other nodes could not reach it.
[[nodiscard]] Place find_place(const NodeOptions& options, const std::string& token);

}  // namespace argosy::launch
