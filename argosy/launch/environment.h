#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/launch/node.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::launch {

/// Everything that all ranks of a job are told.
struct JobDescription {
  int ranks = 1;         ///< ranks that this launcher starts
  int local_offset = 0;  ///< ranks of this node that other launchers start before these
  int cores =
      0;  ///< cores that only these ranks use; 0: all ranks of the node share the node's cores
  int local_size = 0;  ///< ranks of this node; 0: `ranks`
  int first_rank = 0;  ///< of this node
  int world_size = 1;
  int node_rank = 0;
  int nodes = 1;
  /// Of the ranks of this node, the first; the others are then workers. nullopt: none serves.
  std::optional<int> servers{};
  std::string run_id{};
  std::string host = "127.0.0.1";         ///< this node's address
  std::string master_host = "127.0.0.1";  ///< node 0's
  uint16_t master_port = 0;               ///< held on node 0 for a store that rank 0 may host
  std::vector<std::string> endpoints{};   ///< "host:port" of every rank, held (Paddle's endpoints)
  std::vector<int> ranks_of_nodes{};      ///< by node rank; empty: this node's are all
  std::vector<int> servers_of_nodes{};    ///< likewise
  std::string store{};                    ///< "host:port" of our store; empty without one
  std::string token{};                    ///< secret; never printed
  rendezvous::TlsChoice tls{};
  std::string log_dir{};  ///< absolute; empty: no log files
  std::string job_id{};   ///< the job's name in other tools; empty: run_id
  std::string role = "default";
  bool settled = true;  ///< false: ranks, addresses and ports also depend on the other nodes
  int restart = 0;      ///< how often the ranks were started again
  int max_restarts = 0;
  std::vector<std::pair<std::string, std::string>> extra{};  ///< --env, which overrides everything
  std::string cpu_capability{};  ///< "default", "avx2" or "avx512"; empty: what each machine has
  /// The value of CUDA_VISIBLE_DEVICES for all ranks, and of HIP_VISIBLE_DEVICES where GPUs are
  /// AMD's. Each rank takes the GPU of its local rank among them, as torchrun's and Paddle's
  /// programs do. Empty: the variables stay as they are.
  std::vector<int> gpus{};
  /// Each rank sees only one GPU and gets LOCAL_RANK 0. Source: torchrun's --virtual_local_rank.
  bool virtual_local_rank = false;
  std::string interface {};     ///< network interface for the ranks' traffic; empty: they choose
  bool prefix_has_rank = true;  ///< the prefix of each line names the rank
  std::vector<std::vector<int>>
      cpus{};                   ///< the CPUs to which each rank is bound; empty: none is bound
  int bound_cores = 0;          ///< the most threads of a rank, by `cpus`; 0: none is bound
  bool bound_by_queue = false;  ///< --bind then has no effect
  Node node{};
  bool bar = false;  ///< rank 0 may draw a progress bar that redraws itself
  int columns = 0;   ///< width of such a line without the prefix; 0: not known
};

/// What a rank is among those of its kind: of all, or of the servers or workers.
struct RoleOfRank {
  std::string name{};  ///< "server", "worker", or JobDescription::role
  int index = 0;
  int count = 1;
  int local_index = 0;  ///< of this node
  int local_count = 1;
};
[[nodiscard]] RoleOfRank role_of(const JobDescription& job, int local_rank);

/// The endpoints of a job with servers.
struct EndpointsByRole {
  std::vector<std::string> servers{};
  std::vector<std::string> workers{};
};
[[nodiscard]] EndpointsByRole endpoints_by_role(const JobDescription& job);

/// Returns LOCAL_WORLD_SIZE.
[[nodiscard]] inline int local_world_size(const JobDescription& job) {
  return job.local_size > 0 ? job.local_size : job.ranks;
}

/// The threads of a rank, and the cores of which they are a share.
struct Share {
  int threads = 1;
  int cores = 1;          ///< cores that the ranks share
  bool by_queue = false;  ///< the queue gave this number of cores; else this process may use them
  bool bound = false;     ///< a rank is bound to fewer cores than its share
};
[[nodiscard]] Share threads_of_a_rank(const JobDescription& job);

/// Returns the name of one start of the job: run_id and the number of the restart.
[[nodiscard]] std::string start_id(const JobDescription& job);

/// Returns the prefix of each line of the node's rank `local_rank`: `pattern` with ${rank},
/// ${local_rank} and ${role_name} filled in. In a job with servers ${rank} is the number among the
/// servers or the workers. Source: torchrun's --log_line_prefix_template.
[[nodiscard]] std::string line_prefix(std::string pattern,
                                      const JobDescription& job,
                                      int local_rank);

/// Returns the environment of the node's rank `local_rank`: `inherited` ("NAME=value" each) and our
/// variables. `error_file`: see LogPlan::error_file(); empty without one.
///
/// Our variables that place a rank in the job replace inherited ones. Those that tune it
/// (OMP_NUM_THREADS, OMP_WAIT_POLICY, OPENBLAS_CORETYPE, GLIBC_TUNABLES, ARGOSY_PROGRESS, COLUMNS)
/// are set only where none is inherited. OMP_NUM_THREADS becomes cores / ranks of the node, for all
/// ranks at most the cores to which the least of them is bound. If it exceeds one, OMP_WAIT_POLICY
/// becomes passive; see docs/guides/threads.md. With AVX-512, OPENBLAS_CORETYPE becomes SKYLAKEX,
/// because OpenBLAS 0.3.21 takes newer CPUs for older ones without AVX-512 and then runs sgemm at
/// 131 instead of 228 GFLOP/s. With cpu_capability, or where ATEN_CPU_CAPABILITY is inherited,
/// libtorch, oneDNN (DNNL_MAX_CPU_ISA) and OpenBLAS get the kernels of that instruction set, so
/// that unlike machines compute the same bits. ARGOSY_MALLOC=huge sets
/// GLIBC_TUNABLES=glibc.malloc.hugetlb=1. Source: reference lists of torchrun 2.14 and
/// paddle.distributed.launch 3.3.
[[nodiscard]] std::vector<std::string> rank_environment(const JobDescription& job,
                                                        int local_rank,
                                                        const std::vector<std::string>& inherited,
                                                        const std::string& error_file = "");

/// Returns what of that chooses kernels, "NAME=value" each: for a program that trains without being
/// launched, on a processor with or without AVX-512.
[[nodiscard]] std::vector<std::string> kernel_environment(
    bool avx512, const std::vector<std::string>& inherited);

}  // namespace argosy::launch
