#pragma once

#include <sys/types.h>

#include <functional>
#include <map>

namespace argosy::launch {

/// Processes that lost their parent, a rank or something that it started: they become children of
/// the launcher, which is their subreaper (PR_SET_CHILD_SUBREAPER). Most have ended already; what
/// left its rank's group (setsid, a daemon) may live on.
class Adopted final {
 public:
  /// Which children are somebody else's business: the guard, running ranks, what is in the group
  /// of a rank.
  using Others = std::function<bool(pid_t)>;

  /// Reaps those that have ended.
  void reap(const Others& others);
  /// Sends `signal` to each that has not had it yet. Call it again as long as alive(): when one
  /// ends, its own children come.
  void signal(int signal, const Others& others);
  /// Is there any? False too where the kernel does not tell; see os::children().
  [[nodiscard]] bool alive(const Others& others) const;

 private:
  std::map<pid_t, int> told_{};
};

}  // namespace argosy::launch
