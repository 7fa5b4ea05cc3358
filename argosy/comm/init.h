#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "argosy/comm/group.h"

namespace argosy::comm {

/// How the processes of a job find each other.
struct InitOptions {
  /// "env://" (variables of torchrun, Paddle or the launcher; none of them: one process),
  /// "tcp://host:port", "file:///path".
  std::string init_method = "env://";
  /// "auto" (gloo today), "gloo".
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
/// Collective over all processes of the job.
/// Errors: ConfigError (contradictory or partial variables, which it names); TimeoutError listing
/// the ranks that did not come; RendezvousError (store unreachable, wrong token).
[[nodiscard]] Group init(const InitOptions& options = {});

/// A group over a transport and store of one's own: the seam for tests and new backends.
[[nodiscard]] Group make_group(std::unique_ptr<transport::Transport> transport,
                               std::shared_ptr<rendezvous::Store> store,
                               std::string name,
                               std::chrono::milliseconds timeout,
                               bool checked = false);

}  // namespace argosy::comm
