#include "argosy/os/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"

extern char** environ;  // NOLINT: POSIX's name

namespace argosy::os {
namespace {

/// waitid's idtype for a pidfd; older headers lack the name.
constexpr auto kPidFd = static_cast<idtype_t>(3);

/// Everything that the child needs, prepared before fork, since it must not allocate.
struct Plan {
  const char* path;
  char* const* args;
  char* const* env;
  std::array<int, 3> streams;  ///< all above 2, so that no dup2 overwrites one still needed
  int report;                  ///< write end of the pipe that tells the parent of a failure
  pid_t parent;
  const SubprocessOptions* options;
  std::span<const unsigned long> cpu_mask;  ///< empty: not bound
};

[[noreturn]] void give_up(const Plan& plan) {
  const int error = errno;
  [[maybe_unused]] ssize_t ignored = ::write(plan.report, &error, sizeof error);
  if (plan.options->pid_fd >= 0) {
    const auto gone = -static_cast<int32_t>(::getpid());
    ignored = ::write(plan.options->pid_fd, &gone, sizeof gone);
  }
  ::_exit(127);
}

/// A program expects default actions and an empty mask, whatever this process blocks or ignores.
void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction current {};
    // SIGHUP stays ignored when it is: that is how nohup works.
    if (::sigaction(signal, nullptr, &current) == 0 && current.sa_handler != SIG_DFL &&
        !(signal == SIGHUP && current.sa_handler == SIG_IGN)) {
      ::sigaction(signal, &action, nullptr);
    }
  }
  sigset_t none;
  ::sigemptyset(&none);
  // The child has one thread. NOLINTNEXTLINE(concurrency-mt-unsafe)
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Runs in the child: async-signal-safe calls only.
[[noreturn]] void become(const Plan& plan) {
  if (plan.options->own_group && ::setpgid(0, 0) != 0) {
    give_up(plan);
  }
  if (plan.options->die_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
      give_up(plan);
    }
    if (::getppid() != plan.parent) {  // it died before prctl
      ::_exit(127);
    }
  }
  for (int target = 0; target < 3; ++target) {
    if (::dup2(plan.streams[static_cast<size_t>(target)], target) < 0) {
      give_up(plan);
    }
  }
  if (plan.options->pid_fd >= 0) {
    const auto self = static_cast<int32_t>(::getpid());
    [[maybe_unused]] const ssize_t ignored = ::write(plan.options->pid_fd, &self, sizeof self);
    ::signal(SIGPIPE, SIG_IGN);  // forgets one that is pending: the reader may have died
  }
  if (plan.options->keep_fd >= 0) {
    ::fcntl(plan.options->keep_fd, F_SETFD, 0);  // of the child's own table of descriptors
  }
  rlimit files{};
  if (plan.options->open_files != 0 && ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = plan.options->open_files;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  if (!plan.cpu_mask
           .empty()) {  // a mask that does not fit (a cpuset that has changed) binds nobody
    ::syscall(SYS_sched_setaffinity, 0, plan.cpu_mask.size_bytes(), plan.cpu_mask.data());
  }
  reset_signals();
  ::execve(plan.path, plan.args, plan.env);
  give_up(plan);
}

/// fork and pidfd_open in one system call. Called raw, because glibc's fork runs the atfork
/// handlers of every library in the process, which a child that only execs does not need.
pid_t fork_with_pidfd(int* pidfd) {
  return static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, pidfd, nullptr, nullptr));
}

/// As the kernel wants it: a bit for each.
std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const int cpu : cpus) {
    const auto bit = static_cast<size_t>(cpu);
    mask.resize(std::max(mask.size(), bit / kBits + 1));
    mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  return mask;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));  // NOLINT: execve does not write to them
  }
  result.push_back(nullptr);
  return result;
}

/// A copy of `fd` (or of /dev/null) with a number above 2.
Result<UniqueFd> stream_copy(int fd, int flags) {
  UniqueFd null;
  if (fd < 0) {
    Result<UniqueFd> opened = open_file("/dev/null", flags);
    if (!opened.ok()) {
      return opened;
    }
    null = *std::move(opened);
    fd = null.get();
  }
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) {
    return Failure::from_errno("duplicate a standard stream", errno);
  }
  return copy;
}

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::vector<std::string> environ_list() {
  std::vector<std::string> list;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    list.emplace_back(*entry);
  }
  return list;
}

Result<std::string> find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return program;
  }
  bool exists = false;
  for (const std::string& folder :
       strings::split(env::get("PATH").value_or("/usr/local/bin:/usr/bin:/bin"), ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (!program.empty() && is_executable_file(path)) {
      return path;
    }
    exists = exists || ::access(path.c_str(), F_OK) == 0;
  }
  return Failure::from_errno(fmt::format("find \"{}\" in PATH", program),
                             exists && !program.empty() ? EACCES : ENOENT);
}

Result<Subprocess> Subprocess::spawn(const SubprocessOptions& options) {
  if (options.args.empty()) {
    return Failure::from_errno("start a program without a name", EINVAL);
  }
  Result<std::string> path = find_program(options.args.front());
  if (!path.ok()) {
    return std::move(path).failure();
  }
  std::array<UniqueFd, 3> streams;
  const std::array<int, 3> given{options.stdin_fd, options.stdout_fd, options.stderr_fd};
  for (size_t i = 0; i < streams.size(); ++i) {
    Result<UniqueFd> copy = stream_copy(given[i], i == 0 ? O_RDONLY : O_WRONLY);
    if (!copy.ok()) {
      return std::move(copy).failure();
    }
    streams[i] = *std::move(copy);
  }
  Result<Pipe> report = make_pipe();
  if (!report.ok()) {
    return std::move(report).failure();
  }
  UniqueFd report_end(::fcntl(report->write.get(), F_DUPFD_CLOEXEC, 3));
  if (!report_end) {
    return Failure::from_errno("dup the pipe that reports a failed exec", errno);
  }
  report->write.close();
  const std::vector<char*> args = pointers(options.args);
  const std::vector<char*> env = pointers(options.env);
  const std::vector<unsigned long> mask = cpu_mask(options.cpus);
  const Plan plan{path->c_str(),
                  args.data(),
                  env.data(),
                  {streams[0].get(), streams[1].get(), streams[2].get()},
                  report_end.get(),
                  ::getpid(),
                  &options,
                  mask};

  // Blocked until the child has reset its handlers, lest one of ours runs in the child.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const pid_t pid = fork_with_pidfd(&pidfd);
  if (pid == 0) {
    become(plan);
  }
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return Failure::from_errno("make a process", fork_error);
  }
  if (pidfd < 0) {  // an older kernel ignores the flag
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return Failure::from_errno("watch a process, for which Linux 5.4 or newer is needed", ENOSYS);
  }
  Subprocess child(pid, UniqueFd(pidfd));

  // The pipe closes on exec: four bytes mean that it failed, none that the program runs.
  report_end.close();
  int error = 0;
  const Result<size_t> got = read_all(report->read.get(),
                                      std::as_writable_bytes(std::span(&error, 1)),
                                      Deadline::after(options.timeout));
  if (!got.ok()) {
    (void)child.signal(SIGKILL);
    child.abandon();  // it may not even end by that
    return Failure::from_errno("execute " + *path, got.failure().error_number);
  }
  if (*got == sizeof error) {
    return Failure::from_errno("execute " + *path, error);  // the destructor reaps the child
  }
  return child;
}

Subprocess::~Subprocess() {
  if (pidfd_ && !exit_) {
    (void)signal(SIGKILL);
    (void)wait(Deadline::never());
  }
}

Result<std::optional<Exit>> Subprocess::try_wait() {
  if (exit_) {
    return exit_;
  }
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(kPidFd, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return Failure::from_errno(fmt::format("wait for pid {}", pid_), errno);
  }
  if (info.si_pid != 0) {
    exit_ = info.si_code == CLD_EXITED ? Exit{info.si_status, 0} : Exit{0, info.si_status};
  }
  return exit_;
}

Result<std::optional<Exit>> Subprocess::wait(const Deadline& deadline) {
  while (true) {
    Result<std::optional<Exit>> exit = try_wait();
    if (!exit.ok() || *exit) {
      return exit;
    }
    const Result<bool> ended = wait_ready(pidfd_.get(), POLLIN, deadline);
    if (!ended.ok()) {
      return ended.failure();
    }
    if (!*ended) {
      return std::optional<Exit>();
    }
  }
}

Status Subprocess::signal(int number) {
  if (exit_ || ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) == 0 ||
      errno == ESRCH) {
    return {};
  }
  return Failure::from_errno(fmt::format("signal pid {}", pid_), errno);
}

}  // namespace argosy::os
