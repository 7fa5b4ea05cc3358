#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "argosy/launch/node.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::launch {

/// What all ranks of a job are told.
struct JobDescription {
  int ranks = 1;         ///< that this launcher starts
  int local_offset = 0;  ///< ranks of this node that other launchers start before these
  int cores = 0;         ///< that are these ranks' own; 0: all ranks of the node share the node's
  int local_size = 0;    ///< ranks of this node; 0: `ranks`
  int first_rank = 0;    ///< of this node
  int world_size = 1;
  int node_rank = 0;
  int nodes = 1;
  std::string run_id{};
  std::string host = "127.0.0.1";         ///< this node's address
  std::string master_host = "127.0.0.1";  ///< node 0's
  uint16_t master_port = 0;              ///< held on node 0 for rank 0's own store, if it makes one
  std::vector<std::string> endpoints{};  ///< "host:port" of every rank, held (Paddle's endpoints)
  std::string store{};                   ///< "host:port" of our store; empty: there is none
  std::string token{};                   ///< secret; never printed
  rendezvous::TlsChoice tls{};
  std::string log_dir{};  ///< absolute; empty: no log files
  std::string job_id{};   ///< as other tools know the job; empty: run_id
  std::string role = "default";
  bool settled = true;  ///< false: the other nodes will have a say in ranks, addresses and ports
  int restart = 0;      ///< how often the ranks were started again
  int max_restarts = 0;
  std::vector<std::pair<std::string, std::string>> extra{};  ///< --env: wins over everything
  /// What CUDA_VISIBLE_DEVICES becomes for all ranks, each of which takes the GPU of its local rank
  /// among them, as torchrun's and Paddle's programs do; empty: left as it is.
  std::vector<int> gpus{};
  /// Each rank sees one GPU only, and LOCAL_RANK 0. Source: torchrun's --virtual_local_rank.
  bool virtual_local_rank = false;
  std::string interface {};              ///< through which the ranks talk; empty: as they find
  bool prefix_has_rank = true;           ///< what stands before each line says the rank
  std::vector<std::vector<int>> cpus{};  ///< that each rank is bound to; empty: none is
  bool bound_by_queue = false;           ///< so that --bind has no effect
  Node node{};
  bool bar = false;  ///< rank 0 may draw a progress bar that redraws itself
  int columns = 0;   ///< width that such a line has, without the prefix; 0: not known
};

/// LOCAL_WORLD_SIZE
[[nodiscard]] inline int local_world_size(const JobDescription& job) {
  return job.local_size > 0 ? job.local_size : job.ranks;
}

/// The threads of a rank, and what they are a share of.
struct Share {
  int threads = 1;
  int cores = 1;          ///< shared out among the ranks
  bool by_queue = false;  ///< so many the queue gives; else this process may use so many
};
[[nodiscard]] Share threads_of_a_rank(const JobDescription& job);

/// Names one start of the job: run_id, with the number of the restart.
[[nodiscard]] std::string start_id(const JobDescription& job);

/// What stands before each line of the node's rank `local_rank`: `pattern` with ${rank},
/// ${local_rank} and ${role_name} filled in. Source: torchrun's --log_line_prefix_template.
[[nodiscard]] std::string line_prefix(std::string pattern,
                                      const JobDescription& job,
                                      int local_rank);

/// The environment of the node's rank `local_rank`: `inherited` ("NAME=value" each) with our
/// variables put in. `error_file`: see LogPlan::error_file(); empty: there is none.
///
/// Variables that place a rank in the job replace inherited ones; those that tune it
/// (OMP_NUM_THREADS, OMP_WAIT_POLICY, OPENBLAS_CORETYPE, GLIBC_TUNABLES, ARGOSY_PROGRESS, COLUMNS)
/// give way to them. OMP_NUM_THREADS becomes cores / ranks of the node; where that is more than
/// one, OMP_WAIT_POLICY becomes passive, see docs/guides/threads.md. OPENBLAS_CORETYPE=SKYLAKEX
/// where there is AVX-512: OpenBLAS 0.3.21 takes newer CPUs that have it for older ones without, at
/// 131 instead of 228 GFLOP/s of sgemm. With ARGOSY_MALLOC=huge
/// GLIBC_TUNABLES=glibc.malloc.hugetlb=1. Source: reference lists of torchrun 2.14 and
/// paddle.distributed.launch 3.3.
[[nodiscard]] std::vector<std::string> rank_environment(const JobDescription& job,
                                                        int local_rank,
                                                        const std::vector<std::string>& inherited,
                                                        const std::string& error_file = "");

}  // namespace argosy::launch
