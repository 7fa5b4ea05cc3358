#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace argosy::launch {

/// Processes of the job that lost their parent, which was a rank or a process that a rank started.
/// The kernel makes them children of the launcher, which is their subreaper
/// (PR_SET_CHILD_SUBREAPER). Most have ended already. A process that left its rank's group (setsid,
/// a daemon) may live on.
///
/// Strangers are children that do not belong to the job. A shell that starts a process and then
/// execs the launcher (`exec argosy launch … > >(tee log)`) leaves that process to it. A process
/// that a stranger starts is adopted too when its parent ends; know_by() tells it apart.
class Adopted final {
 public:
  /// True for children that others handle: the guard, running ranks and processes in the group of a
  /// rank.
  using Others = std::function<bool(pid_t)>;

  /// Takes the present children for strangers. Construct it before the first process of the job,
  /// the guard included.
  Adopted();

  /// Sets "NAME=value", which all that the ranks start have in their environment. If there were
  /// strangers, only processes that carry it belong to the job.
  void know_by(std::string variable) { mark_ = std::move(variable); }

  /// Reaps the processes that have ended, strangers too.
  void reap(const Others& others);
  /// Sends `signal` to each process that has not had it yet. Call it again while alive() is true,
  /// because the children of one that ends are adopted in turn.
  void signal(int signal, const Others& others);
  /// True if there is any. Also false when the kernel does not tell; see os::children().
  [[nodiscard]] bool alive(const Others& others) const;
  /// Returns their pids.
  [[nodiscard]] std::vector<pid_t> list(const Others& others) const;

 private:
  /// True for a stranger, and for a child of one.
  [[nodiscard]] bool strange(pid_t pid) const;

  std::set<pid_t> strangers_{};
  bool strangers_came_ = false;
  std::string mark_{};
  std::map<pid_t, int> told_{};
};

}  // namespace argosy::launch
