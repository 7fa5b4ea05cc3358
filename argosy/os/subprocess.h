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
  /// Descriptors that become the child's 0, 1 and 2; -1: /dev/null. They stay the caller's.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  /// The child leads a process group of its own, so that it is signalled together with what it
  /// starts, and does not get the terminal's Ctrl-C directly.
  bool own_group = true;
  /// SIGKILL reaches the child when the *thread* that called spawn() ends: spawn from the main
  /// thread. What the child starts itself is not covered.
  bool die_with_parent = true;
  /// Where the child writes its pid, as four bytes, before it runs the program, and its negative
  /// should that fail; -1: nowhere.
  int pid_fd = -1;
  /// Hardware threads that the child may run on; empty: those of this process.
  std::vector<int> cpus{};
  /// Stays open in the child, under the same number; -1: none but the three above do.
  int keep_fd = -1;
  /// The child's soft limit of open files; 0: that of this process.
  rlim_t open_files = 0;
  /// How long execve may take before the child is given up: a file server may be dead.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// How a process ended.
struct Exit {
  int code = 0;    ///< exit code, where signal is 0
  int signal = 0;  ///< the signal that ended it, else 0

  [[nodiscard]] bool ok() const { return code == 0 && signal == 0; }
  /// What a shell shows: the exit code, or 128 + the signal.
  [[nodiscard]] int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

/// A child process, known by pidfd: its number cannot be taken for another process's.
///
///     Subprocess child = *Subprocess::spawn({.args = {"true"}, .env = environ_list()});
///     poll(… child.pidfd() readable when it has ended …);
///     std::optional<Exit> exit = child.try_wait();
///
/// Passive: it never signals or waits by itself, except that the destructor kills and reaps a child
/// that was never waited for.
class Subprocess final {
 public:
  /// Starts the program and waits until it runs or has failed to.
  ///
  /// Only async-signal-safe calls happen between fork and exec, so other threads may exist.
  /// Errors: ENOENT, EACCES, ENOEXEC and so on of execve, with the program's name and path; EAGAIN
  /// or ENOMEM when no process can be made; ETIMEDOUT.
  [[nodiscard]] static Result<Subprocess> spawn(const SubprocessOptions& options);
  ~Subprocess();
  Subprocess(Subprocess&&) noexcept = default;
  Subprocess& operator=(Subprocess&&) = delete;
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] bool running() const { return !exit_; }

  /// Reaps the child if it has ended; afterwards the same answer again.
  [[nodiscard]] Result<std::optional<Exit>> try_wait();
  /// The same, waiting. nullopt: the deadline passed.
  [[nodiscard]] Result<std::optional<Exit>> wait(const Deadline& deadline);
  /// Lets go of a child that even SIGKILL does not end, so that the destructor does not wait for
  /// it.
  void abandon() { pidfd_.close(); }
  /// Signals this process alone. A process that has ended is no error.
  Status signal(int number);

 private:
  Subprocess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  UniqueFd pidfd_;
  std::optional<Exit> exit_{};
};

/// The environment of this process as a list.
[[nodiscard]] std::vector<std::string> environ_list();

/// Where execvp would find `program`; a name with a slash stays as it is.
/// Errors: ENOENT, or EACCES when there are files of that name but none may be executed.
[[nodiscard]] Result<std::string> find_program(const std::string& program);

}  // namespace argosy::os
