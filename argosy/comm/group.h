#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::comm {

class GroupState;

struct SplitOptions {
  int color = 0;  ///< equal colors form a group; negative: this rank joins none (rank() is -1)
  int key = 0;    ///< order of the ranks in the new group; ties keep their old order
};

struct NewGroupOptions {
  /// Only the members call it, and nobody else waits for them. They make groups of the same members
  /// in the same order; a try that failed counts for those that made it.
  bool members_only = false;
  std::string label{};  ///< a word for its name: "dp" makes "world.dp[0:6:2]", of 0, 2, 4 and 6
};

/// An ordered set of ranks that communicate. A handle: copies are the same group.
///
///     comm::Group world = comm::init();
///     comm::Group evens = world.split({.color = world.rank() % 2});
///
/// Thread-safe: any thread may start operations, but all ranks must start the same ones in the same
/// order. They run in that order on the group's own thread.
/// Lifetime: destroy() is optional. When the last copy goes, or the program ends, operations that
/// nobody waited for get five seconds, or none while an exception unwinds the stack. Then they
/// fail.
class Group final {
 public:
  Group() = default;  ///< empty; every use throws UsageError
  explicit Group(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}

  [[nodiscard]] int rank() const;  ///< this process's rank in the group; -1 if it is not a member
  [[nodiscard]] int size() const;  ///< number of members, also for a process that is not a member
  [[nodiscard]] const std::string& name() const;
  /// Returns the number of each rank's host: {0, 0, 1, 1}. Hosts are numbered in the order of their
  /// first ranks here; ranks that cannot share memory count as different hosts. Empty: not known.
  [[nodiscard]] std::vector<int> hosts() const;
  [[nodiscard]] std::chrono::milliseconds timeout() const;
  [[nodiscard]] bool valid() const { return state_ != nullptr; }

  /// Errors: CommError by what an earlier operation failed. What it had on a device may hold
  /// garbage. Ask it before you keep what tensors of a device say; other memory is what it was. Not
  /// collective.
  void check() const;

  /// Makes a group of `ranks`, which are ranks of this group, each once. They become 0, 1, … in
  /// that order. A process that is not among them gets a group whose rank() is -1. Collective over
  /// this group unless `options` say otherwise.
  [[nodiscard]] Group new_group(const std::vector<int>& ranks,
                                const NewGroupOptions& options = {}) const;
  /// Divides this group by color. Collective over this group. Source: MPI_Comm_split.
  [[nodiscard]] Group split(const SplitOptions& options) const;

  /// Waits for running operations up to the timeout, closes the connections and joins the threads.
  /// Later operations throw a UsageError. Idempotent; not collective.
  void destroy();

  [[nodiscard]] GroupState& state()
      const;  ///< for the room's own parts; throws UsageError if empty

 private:
  std::shared_ptr<GroupState> state_;
};

}  // namespace argosy::comm
