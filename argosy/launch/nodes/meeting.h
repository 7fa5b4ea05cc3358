#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/launch/nodes/job_plan.h"
#include "argosy/launch/nodes/keep_alive.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::launch {

/// Where and as whom this node meets the others.
struct Meeting {
  int nodes = 1;
  std::string host{};  ///< of the store that they meet in
  uint16_t port = 0;
  std::string bind{};   ///< where node 0 listens; empty: at `host`
  bool hosts = false;   ///< this node hosts it, and is node 0
  std::string token{};  ///< secret; never printed
  rendezvous::Tls tls{};
  std::vector<std::string> expected{};  ///< addresses of all nodes, where they are known
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  KeepAlive keep_alive{};  ///< node 0's counts for all
};

/// This node among the others, for as long as the object lives.
struct Met {
  JobPlan plan{};
  int node = 0;
  int64_t clock_offset_us = 0;  ///< by which node 0's clock is before this node's
  std::unique_ptr<rendezvous::StoreServer> server{};  ///< on node 0
  std::shared_ptr<rendezvous::Store> store{};
  std::unique_ptr<rendezvous::Presence> presence{};  ///< member "node/<n>"; let it go first

  /// Arrivals of the launchers whose connections to this node's store stand. On node 0 only.
  [[nodiscard]] std::vector<int> others() const;
};

/// Asked again and again while waiting, with a word for the user ("" mostly); throws to give up.
using Patience = std::function<void(const std::string& word)>;

/// Waits until all nodes have come, and agrees with them on who is who.
///
/// Says after 1 s, then each 10 s, who is missing. Errors: TimeoutError naming who did not come;
/// RendezvousError: cannot listen or connect, token refused, the nodes contradict each other (each
/// of them is told).
[[nodiscard]] Met meet(const Meeting& meeting, const NodeInfo& self, const Patience& patience);

/// "waiting for 1 of 3 nodes: 10.0.0.3, 12 s of 300 s"; without `expected` those that are there are
/// named instead.
[[nodiscard]] std::string describe_wait(const Meeting& meeting,
                                        const std::vector<std::string>& there,
                                        std::chrono::milliseconds waited);

}  // namespace argosy::launch
