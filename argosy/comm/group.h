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
  int color = 0;  ///< ranks with equal color form a group; negative: in none (rank() is -1)
  int key = 0;    ///< orders the ranks of the new group; ties by old rank
};

/// An ordered set of ranks that communicate. A value handle; copies refer to the same group.
///
///     comm::Group world = comm::init();
///     comm::Group evens = world.split({.color = world.rank() % 2});
///
/// Thread-safe: operations may be started from any thread, but all ranks must start the same ones
/// in the same order. They run in that order on the group's own thread.
/// Lifetime: destroy() is optional. When the last copy goes, or the program ends, operations that
/// nobody waited for get five seconds (none while an exception unwinds the stack), then they fail.
class Group final {
 public:
  Group() = default;  ///< empty; every use throws UsageError
  explicit Group(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}

  [[nodiscard]] int rank() const;  ///< of this process in this group; -1 if it is not a member
  [[nodiscard]] int size() const;  ///< number of members, also for a process that is none of them
  [[nodiscard]] const std::string& name() const;
  /// For each rank of this group the number of its host: {0, 0, 1, 1}. Hosts are numbered in the
  /// order of their first ranks here; ranks that cannot share memory count as on different ones.
  /// Empty: not known.
  [[nodiscard]] std::vector<int> hosts() const;
  [[nodiscard]] std::chrono::milliseconds timeout() const;
  [[nodiscard]] bool valid() const { return state_ != nullptr; }

  /// Collective over this group. `ranks` (of this group, each once) become 0, 1, … in that order; a
  /// process that is not among them gets a group whose rank() is -1.
  [[nodiscard]] Group new_group(const std::vector<int>& ranks) const;
  /// Collective over this group. Source: MPI_Comm_split.
  [[nodiscard]] Group split(const SplitOptions& options) const;

  /// Waits for running operations up to the timeout, closes the connections, joins the threads.
  /// Idempotent; not collective. Later operations throw UsageError.
  void destroy();

  [[nodiscard]] GroupState& state()
      const;  ///< for the room's own parts; throws UsageError if empty

 private:
  std::shared_ptr<GroupState> state_;
};

}  // namespace argosy::comm
