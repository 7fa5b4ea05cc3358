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

/// Where this node meets the others, and which node it is.
struct Meeting {
  int nodes = 1;
  std::string host{};  ///< host of the store in which they meet
  uint16_t port = 0;
  std::string bind{};  ///< address on which node 0 listens; empty: `host`
  bool hosts = false;  ///< this node hosts the store and is node 0
  /// That it hosts follows from the host's address alone: where another launcher of this host has
  /// begun to, it joins that one.
  bool may_join = false;
  std::string token{};  ///< secret; never printed
  rendezvous::Tls tls{};
  std::vector<std::string> expected{};  ///< addresses of all nodes; empty: not known
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  KeepAlive keep_alive{};  ///< node 0's applies to all
};

/// The membership of this node in the job. It lasts as long as the object lives.
struct Met {
  JobPlan plan{};
  int node = 0;
  int64_t clock_offset_us = 0;                        ///< node 0's clock minus this node's
  std::unique_ptr<rendezvous::StoreServer> server{};  ///< on node 0 only
  std::shared_ptr<rendezvous::Store> store{};
  std::unique_ptr<rendezvous::Presence> presence{};  ///< member "node/<n>"; destroy it first

  /// Returns the arrivals of the launchers that are connected to this node's store. On node 0 only.
  [[nodiscard]] std::vector<int> others() const;
};

/// Called again and again during a wait, with a word for the user (mostly ""). It throws to give
/// up.
using Patience = std::function<void(const std::string& word)>;

/// Waits until all nodes have come, and agrees with them on the plan.
///
/// After 1 s, and then every 10 s, it says which nodes are missing.
/// Errors: TimeoutError naming the nodes that did not come; RendezvousError when it cannot listen
/// or connect, when the token is refused, or when the nodes contradict each other, which each of
/// them is told.
[[nodiscard]] Met meet(const Meeting& meeting, const NodeInfo& own, const Patience& patience);

/// Returns "waiting for 1 of 3 nodes: 10.0.0.3, 12 s of 300 s". Without `expected` it names the
/// nodes that are there instead.
[[nodiscard]] std::string describe_wait(const Meeting& meeting,
                                        const std::vector<std::string>& there,
                                        std::chrono::milliseconds waited);

}  // namespace argosy::launch
