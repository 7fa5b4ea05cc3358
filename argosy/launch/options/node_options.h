#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/launch/nodes/keep_alive.h"
#include "argosy/launch/options/given_options.h"

namespace argosy::launch {

/// The nodes and their meeting place, as far as options say.
struct NodeOptions {
  int nodes = 1;
  int node_rank = -1;       ///< -1: any
  std::string meet_host{};  ///< host of the launchers' own store; only if nodes > 1
  uint16_t meet_port = 0;
  std::vector<std::string> ips{};  ///< addresses of all nodes, by node rank; empty: not known
  std::string address{};           ///< this node's address; empty: find_place() finds it
  std::string interface {};        ///< the network interface of that address; empty: not given
  std::string bind{};              ///< address on which node 0 listens; empty: meet_host
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< how long to wait at the meeting
  KeepAlive keep_alive{};
};

/// Settles where several nodes meet. The first of --rdzv_endpoint, --master, --master_addr, --ips
/// on the command line counts, else variables. Default ports are torchrun's 29400 and 29500, and
/// with --ips one below Paddle's first. Errors: UsageError when none of them is given.
void settle_meeting(const GivenOptions& given, NodeOptions& nodes);

/// Returns what options and variables say about the nodes. Errors: UsageError when they contradict
/// each other.
[[nodiscard]] NodeOptions read_node_options(const GivenOptions& given);

}  // namespace argosy::launch
