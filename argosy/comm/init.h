#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/comm/group.h"

namespace argosy::comm {

/// How the processes of a job find each other.
struct InitOptions {
  /// "env://" (variables of torchrun, Paddle or the launcher; none of them: one process),
  /// "tcp://host:port", "file:///path".
  std::string init_method = "env://";
  /// "auto": ARGOSY_BACKEND, else shm for a group whose ranks share a host, gloo where each has one
  /// of its own, hierarchical for others; "shm", "hierarchical", "gloo"; "nccl" is refused until
  /// there is one.
  std::string backend = "auto";
  /// Limit for the meeting itself and default limit of every operation; PyTorch's is 30 min.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  int rank = -1;        ///< with tcp:// and file://; -1: from the environment
  int world_size = -1;  ///< likewise
  /// Before each collective, compare operation, shape and dtype across ranks and name who differs.
  /// Costs a round trip. Also switched on by ARGOSY_CHECKED=1.
  bool checked = false;
};

/// Joins the job and returns the group of all its ranks, named "world".
///
/// Collective over all processes of the job. A crash of this process tells where from now on; see
/// os/crash_handler.h.
/// Errors: ConfigError (contradictory or partial variables, which it names); TimeoutError listing
/// the ranks that did not come; RendezvousError (store unreachable, wrong token).
[[nodiscard]] Group init(const InitOptions& options = {});

/// How ranks that share a store become a group, without an environment: what init() does after the
/// meeting. For tests and programs that arrange the meeting themselves.
struct ConnectOptions {
  /// "auto": as in InitOptions, by `hosts`; "in_process": ranks are threads.
  std::string backend = "auto";
  /// For each rank of the world the number of its host; empty: not known.
  std::vector<int> hosts{};
  std::shared_ptr<rendezvous::Store> store{};  ///< one that no other group of this name uses
  int rank = 0;
  int size = 1;
  std::string name = "world";
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  bool checked = false;
  std::shared_ptr<void> keep{};  ///< let go when the group closes, before the store
};

/// Collective over the `size` ranks.
///
///     auto store = rendezvous::in_process_store();
///     test::run_ranks(4, [&](int rank) {
///       comm::Group world = comm::connect({.backend = "in_process", .store = store, .rank = rank,
///                                          .size = 4});
///     });
///
/// Errors: UsageError (unknown backend: lists what exists); TimeoutError and CommError naming
/// ranks.
[[nodiscard]] Group connect(const ConnectOptions& options);

/// One member of a sub-group that is being made.
struct TransportRequest {
  int rank = 0;  ///< in the sub-group
  int size = 1;
  std::string group{};                         ///< its name, for messages
  std::vector<int> world_ranks{};              ///< of the members; empty: the same numbers
  std::shared_ptr<rendezvous::Store> store{};  ///< of its own: no other group's keys are in it
  /// Where the ranks of the job are members "rank/<n>", if they are: to learn who died before it
  /// came to the group. May be empty.
  std::shared_ptr<rendezvous::Store> job{};
  std::chrono::milliseconds timeout{0};
};
/// Connects the members of a sub-group. Collective over them; not called for groups of one.
using TransportFactory =
    std::function<std::unique_ptr<transport::Transport>(const TransportRequest&)>;

struct GroupOptions {
  std::string name = "world";
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  bool checked = false;
  std::vector<int> hosts{};  ///< of its ranks; empty: not known
  /// Empty: new_group() and split() throw a UsageError.
  TransportFactory make_transport{};
  std::shared_ptr<void> keep{};  ///< let go when the group closes, before the store
};
/// A group over a transport and store of one's own: the seam for tests and new backends.
[[nodiscard]] Group make_group(std::unique_ptr<transport::Transport> transport,
                               std::shared_ptr<rendezvous::Store> store,
                               GroupOptions options);

}  // namespace argosy::comm
