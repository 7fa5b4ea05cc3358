#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace argosy::launch {

/// Processes that lost their parent, a rank or something that it started: they become children of
/// the launcher, which is their subreaper (PR_SET_CHILD_SUBREAPER). Most have ended already; what
/// left its rank's group (setsid, a daemon) may live on.
///
/// Strangers are children too, but the job's business never: a shell that starts a process and then
/// execs the launcher (`exec argosy launch … > >(tee log)`) leaves it to the launcher. What such a
/// stranger starts is adopted as well when its parent ends; know_by() tells it apart.
class Adopted final {
 public:
  /// Which children are somebody else's business: the guard, running ranks, what is in the group
  /// of a rank.
  using Others = std::function<bool(pid_t)>;

  /// Call it before the first process of the job, the guard included, is started.
  Adopted();

  /// "NAME=value" in the environment of whatever the ranks start. Where there were strangers, only
  /// what carries it is the job's.
  void know_by(std::string variable) { mark_ = std::move(variable); }

  /// Reaps those that have ended, strangers too.
  void reap(const Others& others);
  /// Sends `signal` to each that has not had it yet. Call it again as long as alive(): when one
  /// ends, its own children come.
  void signal(int signal, const Others& others);
  /// Is there any? False too where the kernel does not tell; see os::children().
  [[nodiscard]] bool alive(const Others& others) const;
  /// Those that there are.
  [[nodiscard]] std::vector<pid_t> list(const Others& others) const;

 private:
  /// Somebody else's, or a stranger's child?
  [[nodiscard]] bool strange(pid_t pid) const;

  std::set<pid_t> strangers_{};
  bool strangers_came_ = false;
  std::string mark_{};
  std::map<pid_t, int> told_{};
};

}  // namespace argosy::launch
