#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "argosy/rendezvous/tls.h"

namespace argosy::rendezvous {

/// What the environment says about this process's place in its job. The defaults are those of a
/// program started by hand: one process.
struct JobEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;         ///< among the ranks of this host; -1: nobody said
  int local_world_size = 1;   ///< ranks on this host; -1: nobody said
  int node_rank = -1;         ///< -1: nobody said
  std::string master_addr{};  ///< where rank 0 hosts the store unless store_host is set
  uint16_t master_port = 0;
  std::string store_host{};  ///< ARGOSY_STORE: the store that our launcher hosts; empty: none
  uint16_t store_port = 0;
  std::string token{};   ///< see job_token(); never print it
  TlsChoice tls{};       ///< see read_tls()
  std::string run_id{};  ///< ARGOSY_RUN_ID: one start of the job; a restart has another
  std::string source{};  ///< "torchrun's", "Slurm's", … variables; empty: none were set
  /// TORCHELASTIC_USE_AGENT_STORE: torchrun itself listens at master_port.
  bool master_port_is_torchruns = false;
};

/// Looks a variable up; nullopt when unset or empty.
using Lookup = std::function<std::optional<std::string>(const char*)>;

/// Reads torchrun's variables (RANK, WORLD_SIZE, …), Paddle's (PADDLE_TRAINER_ID, …) and our
/// launcher's; docs/reference/environment.md lists them all. None of them set: one process.
///
/// Without those, what srun and mpirun say to the processes that they start themselves; see
/// clusters/cluster.h. A batch script's own step is one process, with a warning.
/// Errors: ConfigError naming the variables and their values when they contradict each other or
/// when only a part of them is set.
[[nodiscard]] JobEnvironment read_environment();
/// The same from any source of variables, for tests.
[[nodiscard]] JobEnvironment read_environment(const Lookup& lookup);

/// Secret, TLS and ARGOSY_RUN_ID alone, for a process that is told its place otherwise.
[[nodiscard]] JobEnvironment read_identity(const Lookup& lookup);

}  // namespace argosy::rendezvous
