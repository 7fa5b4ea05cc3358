#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/comm/group.h"
#include "argosy/rendezvous/join.h"
#include "argosy/transport/device_queue.h"

namespace argosy::comm {

/// How the processes of a job find each other.
struct InitOptions {
  /// "env://" (variables of torchrun, Paddle or the launcher; without any: one process),
  /// "tcp://host:port", or "file:///path".
  std::string init_method = "env://";
  /// For tensors of the host: "shm", "hierarchical" or "gloo". For tensors of devices: "nccl". For
  /// both, as PyTorch spells it: "cpu:gloo,cuda:nccl". "auto" uses ARGOSY_BACKEND; without it, shm
  /// if all ranks of the group share a host, gloo if each has a host of its own, else hierarchical,
  /// and nccl for devices where every rank has the library. What is not named is chosen so too,
  /// but where only a backend of the host is named, tensors of devices go through the host.
  std::string backend = "auto";
  /// Timeout of the meeting itself, and default timeout of every operation. PyTorch's is 30 min.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  int rank = -1;        ///< with tcp:// and file://; -1: from the environment
  int world_size = -1;  ///< likewise
  /// Compares operation, shape and dtype across ranks before each collective, and names who
  /// differs. Costs a round trip. ARGOSY_CHECKED=1 switches it on too.
  bool checked = false;
};

/// Joins the job and returns the group of all its ranks, named "world".
///
/// Collective over all processes of the job. From now on a crash of this process prints its place;
/// see os/crash_handler.h.
/// Errors: ConfigError (contradictory or partial variables, which it names); TimeoutError listing
/// the ranks that did not come; RendezvousError (store unreachable, wrong token).
[[nodiscard]] Group init(const InitOptions& options = {});

/// Returns `options` with what the environment adds to them. Call it before the meeting, so that
/// nobody waits for a rank that cannot go on.
/// Errors: ConfigError and UsageError naming the option or the variable that is wrong.
[[nodiscard]] InitOptions settle(InitOptions options);

/// Throws a UsageError unless `world_ranks` may be a ConnectOptions::world_ranks.
void check_world_ranks(const std::vector<int>& world_ranks, int size);

struct FormOptions {
  std::string name = "world";
  std::vector<int> world_ranks{};  ///< see ConnectOptions
};
/// How processes that have met become a group: what init() does after the meeting. Collective.
/// `settled`: what settle() has returned. Errors: as init().
[[nodiscard]] Group form(const FormOptions& options,
                         rendezvous::Joined joined,
                         const InitOptions& settled,
                         const Deadline& deadline);

/// How ranks that share a store become a group, without an environment. For tests and programs that
/// arrange the meeting themselves.
struct ConnectOptions {
  /// As in InitOptions, where "auto" goes by `hosts`. "in_process": ranks are threads.
  std::string backend = "auto";
  /// The number of each rank's host. Empty: not known.
  std::vector<int> hosts{};
  /// The number that each rank has in the job, for messages and records. Empty: the same one.
  /// `store` knows the ranks by their numbers in this group all the same.
  std::vector<int> world_ranks{};
  std::shared_ptr<rendezvous::Store> store{};  ///< a store that no other group with this name uses
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
  int rank = 0;  ///< rank in the sub-group
  int size = 1;
  std::string group{};             ///< its name, for messages
  std::vector<int> world_ranks{};  ///< world ranks of the members; empty: the same numbers
  std::shared_ptr<rendezvous::Store> store{};  ///< its own store: it has no other group's keys
  /// The store in which the ranks of the job are members "rank/<n>", to learn who died before it
  /// joined the group. May be empty.
  std::shared_ptr<rendezvous::Store> job{};
  std::vector<int> job_ranks{};  ///< the world ranks of the members of `job`; empty: their numbers
  std::chrono::milliseconds timeout{0};
  /// Of the device whose memory the transport is for; null: the host's.
  std::shared_ptr<transport::DeviceQueues> queues{};
};
/// Connects the members of a sub-group. Collective over them. Not called for groups of one.
using TransportFactory =
    std::function<std::unique_ptr<transport::Transport>(const TransportRequest&)>;

struct GroupOptions {
  std::string name = "world";
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  bool checked = false;
  std::vector<int> world_ranks{};  ///< see ConnectOptions
  std::vector<int> hosts{};        ///< by world rank, -1 for others; empty: not known
  /// If empty, new_group() and split() throw a UsageError.
  TransportFactory make_transport{};
  /// The same for the memory of devices; see Family.
  TransportFactory make_device_transport{};
  std::shared_ptr<void> keep{};  ///< let go when the group closes, before the store
};
/// Makes a group over a transport and a store of your own, for tests and new backends.
[[nodiscard]] Group make_group(std::unique_ptr<transport::Transport> transport,
                               std::shared_ptr<rendezvous::Store> store,
                               GroupOptions options);

}  // namespace argosy::comm
