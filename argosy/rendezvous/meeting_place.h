#pragma once

#include <cstdint>
#include <string>

#include "argosy/rendezvous/environment.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::rendezvous {

/// Whether a process may take the place of a rank that died after all had met.
enum class DeadRank { kStaysDead, kMayBeReplaced };

/// How this process joins a job, and as which rank.
struct JoinOptions {
  /// "env://", "tcp://host:port[?rank=3&world_size=8]" or "file:///path/of/a/new/folder".
  std::string method = "env://";
  int rank = -1;                         ///< -1: the method or the environment says it
  int world_size = -1;                   ///< -1: the method or the environment says it
  DeadRank dead = DeadRank::kStaysDead;  ///< at a launcher's store
};

/// Where the ranks meet, by JoinOptions and environment. See resolve().
struct MeetingPlace {
  enum class Kind {
    kAlone,     ///< one process with an in-process store
    kLauncher,  ///< the launcher hosts the store at host:port
    kRankZero,  ///< rank 0 hosts it at host:port
    kTorchrun,  ///< rank 0 hosts it; torchrun's store at host:port says where
    kFile,      ///< a folder
  };
  Kind kind = Kind::kAlone;
  int rank = 0;
  int world_size = 1;
  std::string host{};
  uint16_t port = 0;
  std::string path{};
  std::string token{};
  TlsChoice tls{};
  std::string run_id{};
};

/// Returns what `options` need of the environment. A method other than env:// that comes with rank
/// and world_size needs nothing, so other variables cannot disturb it.
[[nodiscard]] JobEnvironment environment_for(const JoinOptions& options, const Lookup& lookup);

/// Returns where this process meets the others. `options` win over the query of the method, and the
/// query wins over the environment.
/// Errors: ConfigError naming method, option or variable (unknown scheme, missing port, rank not
/// below world_size, option and query that disagree).
[[nodiscard]] MeetingPlace resolve(const JoinOptions& options, const JobEnvironment& environment);

}  // namespace argosy::rendezvous
