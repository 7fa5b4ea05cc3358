#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "argosy/launch/adopted.h"
#include "argosy/launch/rank.h"
#include "argosy/launch/session.h"

namespace argosy::launch {

/// Tracks processes that the ranks of one start may leave behind: the ranks' process groups, which
/// the guard also knows, and orphans that the launcher adopts.
class Leftovers final {
 public:
  Leftovers(Session& session, std::vector<Rank>& ranks) : session_(session), ranks_(ranks) {}

  /// Adds `rank`, which has started and must keep its address.
  void add(Rank& rank) {
    std::erase(with_group_, &rank);  // of a process before, in the same place
    with_group_.push_back(&rank);
  }
  /// Checks whether anything of the job still lives. The guard forgets groups that are empty.
  void look();
  /// True if something of the job, ranks included, was alive at the last look().
  [[nodiscard]] bool any() const { return any_; }
  /// Reaps orphans that have ended. Prints a message once if somebody killed the guard.
  void reap();
  /// Sends `signal` to processes outside the ranks' groups. Call it again while any() is true.
  void signal_orphans(int signal);
  /// Sends SIGTSTP or SIGCONT to all groups.
  void suspend_or_resume(int signal) const;

  /// Gives up ranks that SIGKILL did not end. Prints that, and returns their pids.
  [[nodiscard]] std::vector<pid_t> abandon_the_undying();
  /// Returns the names of all processes that we cannot end: those of the `undying` ranks and those
  /// that other ranks left behind. Prints the latter; the former are printed already.
  [[nodiscard]] std::vector<std::string> tell(const std::vector<pid_t>& undying);

 private:
  [[nodiscard]] bool owned(pid_t pid) const;
  [[nodiscard]] bool in_group(pid_t pid) const;
  [[nodiscard]] Adopted::Others owned_or_in_group() const;

  Session& session_;
  std::vector<Rank>& ranks_;
  std::vector<Rank*> with_group_{};  ///< ranks whose process group is not empty
  bool any_ = false;
};

}  // namespace argosy::launch
