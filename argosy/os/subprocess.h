#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

struct SubprocessOptions {
  /// Program and arguments. A program without a slash is looked up in the PATH of this process.
  std::vector<std::string> args{};
  /// The whole environment, "NAME=value" each. See environ_list().
  std::vector<std::string> env{};
  /// Descriptors that become the child's 0, 1 and 2. -1: /dev/null. The caller still owns them.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  /// The child leads a process group of its own. It is then signalled together with what it starts,
  /// and the terminal's Ctrl-C does not reach it directly.
  bool own_group = true;
  /// The child gets SIGKILL when the *thread* that called spawn() ends, so spawn from the main
  /// thread. Processes that the child starts are not covered.
  bool die_with_parent = true;
  /// Descriptor to which the child writes its pid, as four bytes, before it runs the program. If
  /// that fails, it writes the negative pid. -1: none.
  int pid_fd = -1;
  /// Hardware threads that the child may run on; empty: those of this process.
  std::vector<int> cpus{};
  /// One more descriptor that stays open in the child, under the same number. -1: none.
  int keep_fd = -1;
  /// The child's soft limit of open files; 0: that of this process.
  rlim_t open_files = 0;
  /// How long execve may take before the child is given up, because a file server may be dead.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// How a process ended.
struct Exit {
  int code = 0;    ///< the exit code if signal is 0
  int signal = 0;  ///< the signal that ended it; 0: none

  [[nodiscard]] bool ok() const { return code == 0 && signal == 0; }
  /// Returns what a shell shows: the exit code, or 128 + the signal.
  [[nodiscard]] int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

/// A child process, known by its pidfd. Its number therefore cannot be mistaken for that of another
/// process.
///
///     Subprocess child = *Subprocess::spawn({.args = {"true"}, .env = environ_list()});
///     poll(… child.pidfd() readable when it has ended …);
///     std::optional<Exit> exit = child.try_wait();
///
/// It is passive and never signals or waits by itself, with one exception: the destructor kills and
/// reaps a child that was never waited for.
class Subprocess final {
 public:
  /// Starts the program, and waits until it runs or has failed to start.
  ///
  /// Only async-signal-safe calls happen between fork and exec, so other threads may exist.
  /// Errors: what execve says (ENOENT, EACCES, ENOEXEC and so on), with the program's name and
  /// path; EAGAIN or ENOMEM when no process can be made; ETIMEDOUT.
  [[nodiscard]] static Result<Subprocess> spawn(const SubprocessOptions& options);
  ~Subprocess();
  Subprocess(Subprocess&&) noexcept = default;
  Subprocess& operator=(Subprocess&&) = delete;
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] bool running() const { return !exit_; }

  /// Reaps the child if it has ended. Later calls return the same answer. nullopt: it still runs.
  [[nodiscard]] Result<std::optional<Exit>> try_wait();
  /// Waits until the child has ended, and reaps it. nullopt: the deadline passed.
  [[nodiscard]] Result<std::optional<Exit>> wait(const Deadline& deadline);
  /// Gives up a child that even SIGKILL does not end, so that the destructor does not wait for it.
  void abandon() { pidfd_.close(); }
  /// Sends a signal to this process alone. Succeeds when the process has ended already.
  Status signal(int number);

 private:
  Subprocess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  UniqueFd pidfd_;
  std::optional<Exit> exit_{};
};

/// Returns the environment of this process as a list.
[[nodiscard]] std::vector<std::string> environ_list();

/// Returns the path at which execvp would find `program`. A name with a slash stays as it is.
/// Errors: ENOENT, or EACCES when there are files of that name but none may be executed.
[[nodiscard]] Result<std::string> find_program(const std::string& program);

}  // namespace argosy::os
