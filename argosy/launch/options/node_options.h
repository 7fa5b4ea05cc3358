#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/launch/nodes/keep_alive.h"
#include "argosy/launch/options/given_options.h"

namespace argosy::launch {

/// Which nodes there are and where they meet, as far as options say.
struct NodeOptions {
  int nodes = 1;
  int node_rank = -1;       ///< -1: whichever
  std::string meet_host{};  ///< of the launchers' own store; nodes > 1 only
  uint16_t meet_port = 0;
  std::vector<std::string> ips{};  ///< of all nodes, by node rank; empty: not known
  std::string address{};           ///< this node's; empty: to be found out
  std::string interface {};        ///< the one whose address that is; empty: not said
  std::string bind{};              ///< where node 0 listens; empty: where the others meet it
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< of the meeting
  KeepAlive keep_alive{};
};

/// Where several nodes meet: the first of --rdzv_endpoint, --master, --master_addr, --ips that the
/// command line gives, else variables. Ports that are not given: torchrun's 29400 and 29500; below
/// Paddle's first one with --ips. Errors: UsageError: none of them is given.
void settle_meeting(const GivenOptions& given, NodeOptions& nodes);

/// What options and variables say of the nodes. Errors: UsageError: they contradict each other.
[[nodiscard]] NodeOptions read_node_options(const GivenOptions& given);

}  // namespace argosy::launch
