#include "tests/support/run_ranks.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <typeinfo>

#include <gtest/gtest.h>

#include "argosy/base/bounded_queue.h"
#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::test {
namespace {

/// Hundreds of ranks in one process hold more sockets than a user's shell allows at first.
void allow_all_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

std::string current_exception_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type->name();
}

/// Runs fn(rank) and notes the exception that leaves it.
void run_one(int rank, const std::function<void(int)>& fn, RankOutcome& outcome) {
  outcome.rank = rank;
  try {
    fn(rank);
  } catch (const CommError& e) {
    outcome.error_type = current_exception_type();
    outcome.error = e.what();
    outcome.peers = e.peers();
  } catch (const std::exception& e) {
    outcome.error_type = current_exception_type();
    outcome.error = e.what();
  } catch (...) {
    outcome.error_type = current_exception_type();
    outcome.error = "(not a std::exception)";
  }
}

std::vector<RankOutcome> run_threads(int n,
                                     const std::function<void(int)>& fn,
                                     const Deadline& deadline) {
  std::vector<RankOutcome> outcomes(static_cast<size_t>(n));
  BoundedQueue<int> ended(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      run_one(rank, fn, outcomes[static_cast<size_t>(rank)]);
      ended.push(rank);
    });
  }
  std::vector<bool> running(static_cast<size_t>(n), true);
  for (int i = 0; i < n; ++i) {
    if (const auto rank = ended.pop(deadline)) {
      running[static_cast<size_t>(*rank)] = false;
      continue;
    }
    std::vector<int> stuck;
    for (int rank = 0; rank < n; ++rank) {
      if (running[static_cast<size_t>(rank)]) {
        stuck.push_back(rank);
      } else if (const auto& outcome = outcomes[static_cast<size_t>(rank)]; !outcome.ok()) {
        fmt::print(stderr, "{}\n", describe(outcome));
      }
    }
    fmt::print(stderr, "run_ranks: deadline passed, still running: {}\n", strings::ranges(stuck));
    std::abort();
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return outcomes;
}

/// A file in memory that parent and child share; no pipe that could fill up and block a rank.
int shared_file(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  return fd;
}

void write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) {
      return;
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

std::string read_all(int fd) {
  std::string text(static_cast<size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_END))), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

int failed_expectations() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  int failed = 0;
  for (int i = 0; info != nullptr && i < info->result()->total_part_count(); ++i) {
    failed += info->result()->GetTestPartResult(i).failed() ? 1 : 0;
  }
  return failed;
}

struct Child {
  pid_t pid = -1;
  int pid_fd = -1;
  int output_fd = -1;
  int report_fd = -1;
};

constexpr char kFieldEnd = '\0';

/// In the child: runs the rank, writes "<failed>\0<type>\0<what>\0<peers>\0", and ends.
[[noreturn]] void child_main(int rank, const std::function<void(int)>& fn, const Child& child) {
  ::dup2(child.output_fd, STDOUT_FILENO);
  ::dup2(child.output_fd, STDERR_FILENO);
  const int failed_before = failed_expectations();
  RankOutcome outcome;
  run_one(rank, fn, outcome);
  std::string report = failed_expectations() > failed_before ? "1" : "0";
  report += kFieldEnd + outcome.error_type + kFieldEnd + outcome.error + kFieldEnd;
  for (const int peer : outcome.peers) {
    report += fmt::format("{},", peer);
  }
  report += kFieldEnd;
  write_all(child.report_fd, report);
  std::fflush(nullptr);
  ::_exit(0);
}

Child start_child(int rank, const std::function<void(int)>& fn) {
  Child child;
  child.output_fd = shared_file("argosy-rank-output");
  child.report_fd = shared_file("argosy-rank-report");
  std::fflush(nullptr);  // or the child would print the parent's buffered text once more
  const pid_t parent = ::getpid();
  child.pid = ::fork();
  if (child.pid < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (child.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(1);
    }
    child_main(rank, fn, child);
  }
  child.pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0));
  return child;
}

bool wait_exit(const Child& child, const Deadline& deadline) {
  pollfd event{child.pid_fd, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&event, 1, static_cast<int>(deadline.remaining().count()));
    if (ready > 0) {
      return true;
    }
    if (deadline.expired()) {
      return false;
    }
  }
}

RankOutcome collect(int rank, const Child& child, bool timed_out) {
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  RankOutcome outcome;
  outcome.rank = rank;
  outcome.timed_out = timed_out;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  outcome.output = read_all(child.output_fd);
  const auto fields = strings::split(read_all(child.report_fd), kFieldEnd);
  outcome.cut_short = fields.size() < 4 && outcome.signal == 0 && outcome.exit_code == 0;
  if (fields.size() >= 4) {
    outcome.expectation_failed = fields[0] == "1";
    outcome.error_type = fields[1];
    outcome.error = fields[2];
    for (const auto& peer : strings::split(fields[3], ',')) {
      if (const auto number = strings::parse_int(peer)) {
        outcome.peers.push_back(static_cast<int>(*number));
      }
    }
  }
  ::close(child.output_fd);
  ::close(child.report_fd);
  ::close(child.pid_fd);
  return outcome;
}

std::vector<RankOutcome> run_processes(int n,
                                       const std::function<void(int)>& fn,
                                       const Deadline& deadline) {
  std::vector<Child> children;
  for (int rank = 0; rank < n; ++rank) {
    children.push_back(start_child(rank, fn));
  }
  std::vector<bool> late;
  for (const Child& child : children) {
    late.push_back(!wait_exit(child, deadline));
  }
  std::vector<RankOutcome> outcomes;
  for (int rank = 0; rank < n; ++rank) {
    const auto i = static_cast<size_t>(rank);
    if (late[i]) {
      ::kill(children[i].pid, SIGKILL);
    }
    outcomes.push_back(collect(rank, children[i], late[i]));
  }
  for (const auto& outcome : outcomes) {
    if (std::find(late.begin(), late.end(), true) != late.end()) {
      fmt::print(stderr, "run_ranks: deadline passed; {}\n", describe(outcome));
    }
  }
  return outcomes;
}

}  // namespace

std::string describe(const RankOutcome& outcome) {
  std::string text = fmt::format("rank {}: ", outcome.rank);
  if (outcome.timed_out) {
    text += "killed: still running at the deadline";
  } else if (outcome.signal != 0) {
    text += fmt::format("ended by signal {} ({})", outcome.signal, sigabbrev_np(outcome.signal));
  } else if (!outcome.error_type.empty()) {
    text += fmt::format("{}: {}", outcome.error_type, outcome.error);
  } else if (outcome.exit_code != 0) {
    text += fmt::format("exit code {}", outcome.exit_code);
  } else if (outcome.cut_short) {
    text += "its process ended with exit code 0 before its function returned";
  } else {
    text += outcome.expectation_failed ? "an expectation failed" : "ended well";
  }
  if (!outcome.output.empty()) {
    text += "\n--- output of rank " + std::to_string(outcome.rank) + ":\n" + outcome.output;
  }
  return text;
}

std::vector<RankOutcome> try_run_ranks(int n,
                                       const std::function<void(int)>& fn,
                                       const RankOptions& options) {
  const Deadline deadline = Deadline::after(options.deadline);
  allow_all_files();
  return options.mode == RankMode::kThreads ? run_threads(n, fn, deadline)
                                            : run_processes(n, fn, deadline);
}

void run_ranks(int n, const std::function<void(int)>& fn, const RankOptions& options) {
  std::string failures;
  for (const auto& outcome : try_run_ranks(n, fn, options)) {
    if (!outcome.ok()) {
      failures += "\n" + describe(outcome);
    }
  }
  if (!failures.empty()) {
    throw std::runtime_error("run_ranks: not every rank ended well:" + failures);
  }
}

}  // namespace argosy::test
