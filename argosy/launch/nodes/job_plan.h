#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/nodes/keep_alive.h"

namespace argosy::launch {

/// What one node's launcher says about itself when it joins.
struct NodeInfo {
  int wanted_rank = -1;                    ///< --node_rank; -1: any
  std::string host{};                      ///< its name, for people
  std::string address{};                   ///< where the other nodes reach it
  int pid = 0;                             ///< pid of its launcher
  int ranks = 1;                           ///< ranks that it will start
  int servers = -1;                        ///< of them, the first; -1: a job without servers
  int nodes = 1;                           ///< nodes of the job, by its options
  std::vector<std::string> ips{};          ///< its --ips; empty: not given
  uint16_t master_port = 0;                ///< port held there for rank 0's own store
  std::vector<uint16_t> endpoint_ports{};  ///< one port held for each rank
  std::string version{};
  std::string run_id{};  ///< node 0's is the job's
  std::string job_id{};  ///< by its options
  int64_t grace_ms = 0;  ///< its --shutdown_timeout
  /// It stands in for a tool whose programs may expect equal numbers of ranks on all nodes.
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
    int servers = -1;
  };
  std::string run_id{};
  std::vector<Node> nodes{};  ///< by node rank
  std::string master_host{};  ///< node 0's address
  uint16_t master_port = 0;
  std::vector<std::string> endpoints{};  ///< "host:port" of every rank
  std::vector<int> node_of_arrival{};    ///< node ranks in the order of arrival; -1: it left again
  int64_t grace_ms = 0;                  ///< the longest of all nodes
  KeepAlive keep_alive{};                ///< node 0's
  std::string refusal{};                 ///< why there is no job; empty: there is one

  [[nodiscard]] int world_size() const { return static_cast<int>(endpoints.size()); }
  [[nodiscard]] int node_of(int rank) const;
  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static JobPlan from_json(const std::string& text);
};

/// Makes the plan from what the nodes say about themselves. Nodes that asked for a rank get it. The
/// others get the remaining ranks, in the order of `ips` if the nodes agree on one list, else in
/// the order of arrival.
///
/// `arrived` is in the order of arrival; a node that left before all had come is nullopt and gets
/// no part. A contradiction makes a plan with a refusal that names it: node ranks that are taken
/// twice or not below the number of nodes; or different numbers of nodes, lists of addresses, jobs
/// or versions.
[[nodiscard]] JobPlan make_plan(const std::vector<std::optional<NodeInfo>>& arrived,
                                const std::string& run_id);

}  // namespace argosy::launch
