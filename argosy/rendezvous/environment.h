#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "argosy/rendezvous/tls.h"

namespace argosy::rendezvous {

/// The place of this process in its job, as the environment says. The defaults describe a program
/// that was started by hand, as one process.
struct JobEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;         ///< among the ranks of this host; -1: not known
  int local_world_size = 1;   ///< ranks on this host; -1: not known
  int node_rank = -1;         ///< -1: not known
  std::string master_addr{};  ///< where rank 0 hosts the store, unless store_host is set
  uint16_t master_port = 0;
  std::string
      store_host{};  ///< ARGOSY_STORE: the store of our launcher; empty: there is no launcher
  uint16_t store_port = 0;
  std::string token{};   ///< see job_token(); never print it
  TlsChoice tls{};       ///< see read_tls()
  std::string run_id{};  ///< ARGOSY_RUN_ID: names one start of the job; a restart has another
  std::string
      source{};  ///< whose variables these are: "torchrun's", "Slurm's"; empty: none are set
  /// TORCHELASTIC_USE_AGENT_STORE: torchrun itself listens at master_port.
  bool master_port_is_torchruns = false;
};

/// Returns the value of a variable; nullopt when it is unset or empty.
using Lookup = std::function<std::optional<std::string>(const char*)>;

/// Reads torchrun's variables (RANK, WORLD_SIZE, …), Paddle's (PADDLE_TRAINER_ID, …) and our
/// launcher's; docs/reference/environment.md lists them all. Where none of them is set, it reads
/// what srun and mpirun tell the processes that they start (clusters/cluster.h). Without that,
/// there is one process; a batch script's own step is one process too, with a warning. Errors:
/// ConfigError naming the variables and their values when they contradict each other or when only
/// some of them are set.
[[nodiscard]] JobEnvironment read_environment();
/// The same from any source of variables, for tests.
[[nodiscard]] JobEnvironment read_environment(const Lookup& lookup);

/// Reads only secret, TLS and ARGOSY_RUN_ID, for a process that learns its place in another way.
[[nodiscard]] JobEnvironment read_identity(const Lookup& lookup);

}  // namespace argosy::rendezvous
