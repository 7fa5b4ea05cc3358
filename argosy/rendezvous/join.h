#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/environment.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// How this process joins a job, and as which rank.
struct JoinOptions {
  /// "env://", "tcp://host:port[?rank=3&world_size=8]" or "file:///path/of/a/new/folder".
  std::string method = "env://";
  int rank = -1;        ///< -1: the method or the environment says it
  int world_size = -1;  ///< -1: the method or the environment says it
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

/// Returns where this process meets the others. `options` win over the query of the method, and the
/// query wins over the environment.
/// Errors: ConfigError naming method, option or variable (unknown scheme, missing port, rank not
/// below world_size, option and query that disagree).
[[nodiscard]] MeetingPlace resolve(const JoinOptions& options, const JobEnvironment& environment);

/// Opens the store at `place`. Rank 0 hosts it where nobody else does.
///
/// With a run id, all keys and members stand below "run/<id>/", so a restarted job sees nothing of
/// the run before. A program may leave its job and join again: at a launcher's store each call uses
/// a level of its own ("run/<id>/0", "…/1"); elsewhere the process waits until all ranks have left
/// the former job.
///
/// Lifetime: destroy presences before the store. In a rank that hosts, the server lives as long as
/// the returned store, whose destructor waits at most five seconds until the members of other
/// processes have left. The last rank that leaves a file:// store removes its folder, unless a rank
/// was lost.
/// Errors: RendezvousError (cannot listen, unreachable, token refused); ConfigError; TimeoutError
/// naming the ranks that are still in the former job; UsageError when this process is.
[[nodiscard]] std::shared_ptr<Store> open_store(const MeetingPlace& place,
                                                const Deadline& deadline);

/// Registers this process as `rank`, and waits until all `world_size` ranks did the same. Returns
/// its presence as member "rank/<n>": keep it for the life of the job.
///
/// Blocks: until all ranks are there. Every 10 s a warning says which are missing.
/// Errors: TimeoutError whose peers() and text list the missing ranks; RendezvousError when a rank
/// is taken (it names host and pid of both), when ranks disagree about world_size or run id, when a
/// rank died or left before all had come, and when the store belongs to a former run.
[[nodiscard]] std::unique_ptr<Presence> wait_for_ranks(Store& store,
                                                       int rank,
                                                       int world_size,
                                                       const Deadline& deadline,
                                                       const std::string& run_id = "");

/// A process that has met all others.
struct Joined {
  std::shared_ptr<Store> store{};
  int rank = 0;
  int world_size = 1;
  std::unique_ptr<Presence> presence{};  ///< member "rank/<n>"; destroy it before the store
  JobEnvironment environment{};
};

/// Returns what `options` need of the environment. A method other than env:// that comes with rank
/// and world_size needs nothing, so other variables cannot disturb it.
[[nodiscard]] JobEnvironment environment_for(const JoinOptions& options, const Lookup& lookup);

/// Calls environment_for(), resolve(), open_store() and wait_for_ranks().
[[nodiscard]] Joined join(const JoinOptions& options, const Deadline& deadline);

}  // namespace argosy::rendezvous
