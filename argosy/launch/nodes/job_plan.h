#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/nodes/keep_alive.h"

namespace argosy::launch {

/// What one node's launcher says of itself when it joins.
struct NodeInfo {
  int wanted_rank = -1;                    ///< --node_rank; -1: whichever comes
  std::string host{};                      ///< its name, for people
  std::string address{};                   ///< where the other nodes reach it
  int pid = 0;                             ///< of its launcher
  int ranks = 1;                           ///< that it will start
  int nodes = 1;                           ///< of the job, as it was told
  std::vector<std::string> ips{};          ///< --ips as it was told; empty: not
  uint16_t master_port = 0;                ///< held there for rank 0's own store
  std::vector<uint16_t> endpoint_ports{};  ///< one held for each rank
  std::string version{};
  std::string run_id{};  ///< of node 0: the job's
  std::string job_id{};  ///< as it was told
  int64_t grace_ms = 0;  ///< its --shutdown_timeout
  /// It stands in for a tool whose programs may expect the same number of ranks on all nodes.
  bool same_ranks = false;

  [[nodiscard]] std::string to_json() const;
  /// Errors: RendezvousError (not our form).
  [[nodiscard]] static NodeInfo from_json(const std::string& text);
};

/// The job as all its launchers know it: which node has which ranks, and where they meet.
struct JobPlan {
  struct Node {
    std::string host{};
    std::string address{};
    int pid = 0;
    int first_rank = 0;
    int ranks = 1;
  };
  std::string run_id{};
  std::vector<Node> nodes{};  ///< by node rank
  std::string master_host{};  ///< node 0's address
  uint16_t master_port = 0;
  std::vector<std::string> endpoints{};  ///< "host:port" of every rank
  std::vector<int> node_of_arrival{};  ///< node rank of who came first, second, …; -1: gone again
  int64_t grace_ms = 0;                ///< the longest of all nodes
  KeepAlive keep_alive{};              ///< node 0's
  std::string refusal{};               ///< not empty: there is no job, and why

  [[nodiscard]] int world_size() const { return static_cast<int>(endpoints.size()); }
  [[nodiscard]] int node_of(int rank) const;
  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static JobPlan from_json(const std::string& text);
};

/// Puts together what the nodes, in the order in which they came, say of themselves. Nodes that
/// asked for a rank get it, the others what is left, in order of `ips` where they agree on one,
/// else as they came.
///
/// `arrived`: by arrival; what went again before all were there is nullopt, and has no part in it.
/// A contradiction makes a plan with a refusal that names it: node ranks taken twice or not below
/// the number of nodes, numbers of nodes or lists of addresses that differ, jobs or versions that
/// do.
[[nodiscard]] JobPlan make_plan(const std::vector<std::optional<NodeInfo>>& arrived,
                                const std::string& run_id);

}  // namespace argosy::launch
