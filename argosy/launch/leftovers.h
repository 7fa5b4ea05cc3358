#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "argosy/launch/adopted.h"
#include "argosy/launch/rank.h"
#include "argosy/launch/session.h"

namespace argosy::launch {

/// What the ranks of one start have started and may leave behind: their process groups, which the
/// guard knows too, and the orphans that the launcher adopts.
class Leftovers final {
 public:
  Leftovers(Session& session, std::vector<Rank>& ranks) : session_(session), ranks_(ranks) {}

  /// `rank`, one of the ranks, has started. It must not move from here on.
  void add(Rank& rank) { with_group_.push_back(&rank); }
  /// Looks whether anything of the job still lives; lets the guard forget the groups that have
  /// emptied.
  void look();
  /// Something of the job, ranks included, still lived when look() was called.
  [[nodiscard]] bool any() const { return any_; }
  /// Reaps orphans that have ended. Says so, once, should the guard be lost.
  void reap();
  /// Ends what is in no rank's group. Call it again as long as any().
  void signal_orphans(int signal);
  /// SIGTSTP or SIGCONT to all groups.
  void suspend_or_resume(int signal) const;

  /// Gives up the ranks that even SIGKILL does not end, and says so.
  [[nodiscard]] std::vector<pid_t> abandon_the_undying();
  /// Processes that we cannot end, in words: those of `undying` ranks, of which is told already,
  /// and what ranks have left, of which this tells.
  [[nodiscard]] std::vector<std::string> tell(const std::vector<pid_t>& undying);

 private:
  [[nodiscard]] bool owned(pid_t pid) const;
  [[nodiscard]] bool in_group(pid_t pid) const;
  [[nodiscard]] Adopted::Others owned_or_in_group() const;

  Session& session_;
  std::vector<Rank>& ranks_;
  std::vector<Rank*> with_group_{};  ///< those of whose process group something still lives
  bool any_ = false;
};

}  // namespace argosy::launch
