#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/environment.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// How and as whom this process joins a job.
struct JoinOptions {
  /// "env://", "tcp://host:port[?rank=3&world_size=8]" or "file:///path/of/a/new/folder".
  std::string method = "env://";
  int rank = -1;        ///< -1: as the method or the environment says
  int world_size = -1;  ///< likewise
};

/// Where the ranks meet: JoinOptions and environment put together. See resolve().
struct MeetingPlace {
  enum class Kind {
    kAlone,     ///< one process and nowhere to go: an in-process store
    kLauncher,  ///< the launcher hosts the store at host:port
    kRankZero,  ///< rank 0 hosts it at host:port
    kTorchrun,  ///< rank 0 hosts it and says where in torchrun's store, which is at host:port
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

/// What `options` say wins over the method's query, and that over the environment.
/// Errors: ConfigError naming method, option or variable (unknown scheme, missing port, rank not
/// below world_size, option and query that disagree).
[[nodiscard]] MeetingPlace resolve(const JoinOptions& options, const JobEnvironment& environment);

/// Opens the store at `place`; rank 0 hosts it where nobody else does. With a run id, all keys and
/// members live below "run/<id>/", so a restarted job meets nothing of its former life. At a
/// launcher's store each call goes one level deeper ("run/<id>/0", "…/1"), so that a program may
/// leave its job and join again; elsewhere a process that join()ed here before waits until all
/// ranks have left the former job.
///
/// Lifetime: let presences go before the store. In a hosting rank the server lives as long as the
/// returned store; letting go of that waits, five seconds at most, until the members that announced
/// themselves from elsewhere have left. The last rank that leaves a file:// store removes its
/// folder, unless a rank was lost.
/// Errors: RendezvousError (cannot listen, unreachable, token refused), ConfigError; TimeoutError
/// naming who is still in the former job; UsageError when that is this process.
[[nodiscard]] std::shared_ptr<Store> open_store(const MeetingPlace& place,
                                                const Deadline& deadline);

/// Registers this process as `rank` and waits until all `world_size` ranks did the same. Returns
/// its presence as member "rank/<n>": hold it for the life of the job, note() progress in it.
///
/// Warns each 10 s who is still missing.
/// Errors: TimeoutError whose peers() and text list the missing ranks; RendezvousError when a rank
/// is taken (naming host and pid of both), when the ranks disagree about world_size or run id, when
/// one died or left before all had come, and when the store is that of a former run.
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
  std::unique_ptr<Presence> presence{};  ///< member "rank/<n>"; let it go before the store
  JobEnvironment environment{};
};

/// The environment as far as `options` need it: a method other than env:// that comes with rank and
/// world_size is not disturbed by what else is set.
[[nodiscard]] JobEnvironment environment_for(const JoinOptions& options, const Lookup& lookup);

/// environment_for(), resolve(), open_store() and wait_for_ranks() in one call.
[[nodiscard]] Joined join(const JoinOptions& options, const Deadline& deadline);

}  // namespace argosy::rendezvous
