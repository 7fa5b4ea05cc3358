#include "argosy/os/children.h"

#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/fd.h"
#include "argosy/os/signals.h"
#include "argosy/os/subprocess.h"

namespace argosy::os {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Children, AreListedUntilTheyAreReaped) {
  std::optional<Subprocess> child(*Subprocess::spawn({.args = {"sleep", "100"}}));
  const pid_t pid = child->pid();
  EXPECT_THAT(*children(), Contains(pid));
  child.reset();  // kills and reaps
  EXPECT_THAT(*children(), Not(Contains(pid)));
}

TEST(Children, OfOtherThreadsToo) {
  const Subprocess child = *Subprocess::spawn({.args = {"sleep", "100"}});
  std::thread([&] { EXPECT_THAT(*children(), Contains(child.pid())); }).join();
}

TEST(Children, AndTheirsAreFoundFromAbove) {
  Pipe pipe = *make_pipe();
  const Subprocess child =
      *Subprocess::spawn({.args = {"sh", "-c", "sh -c 'sleep 100 & echo $!; wait' & wait"},
                          .stdout_fd = pipe.write.get()});
  std::string text(16, '\0');
  text.resize(static_cast<size_t>(::read(pipe.read.get(), text.data(), text.size())));
  const auto grandchild = static_cast<pid_t>(std::stoi(text));
  const std::vector<pid_t> all = with_descendants(child.pid(), 10);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.front(), child.pid());
  EXPECT_EQ(all.back(), grandchild);
  EXPECT_EQ(with_descendants(child.pid(), 2).size(), 2U);
  EXPECT_EQ(with_descendants(grandchild, 10), std::vector<pid_t>{grandchild});
  ::kill(all[1], SIGKILL);
  ::kill(grandchild, SIGKILL);
}

TEST(Children, ThatAreStoppedSayByWhat) {
  const Subprocess child = *Subprocess::spawn({.args = {"sleep", "100"}});
  EXPECT_FALSE(stopped(child.pid()).has_value());
  for (const int signal : {SIGSTOP, SIGTSTP}) {
    ASSERT_EQ(::kill(child.pid(), signal), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED), 0);
    const std::optional<Stopped> how = stopped(child.pid());
    ASSERT_TRUE(how.has_value());
    EXPECT_THAT(how->by, AnyOf(signal_name(signal), "a signal"));  // by an old kernel
    EXPECT_FALSE(how->traced);
    ASSERT_EQ(::kill(child.pid(), SIGCONT), 0);
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WCONTINUED), 0);
    EXPECT_FALSE(stopped(child.pid()).has_value());
  }
}

TEST(Children, ThatADebuggerHoldsSayWhich) {
  const Subprocess child = *Subprocess::spawn({.args = {"sleep", "100"}});
  if (::ptrace(PTRACE_ATTACH, child.pid(), nullptr, nullptr) != 0) {
    GTEST_SKIP() << "this sandbox forbids ptrace: " << errno;
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  const std::optional<Stopped> how = stopped(child.pid());
  ASSERT_TRUE(how.has_value());
  EXPECT_TRUE(how->traced);
  EXPECT_THAT(how->by, HasSubstr("(pid " + std::to_string(::getpid()) + ")"));
  EXPECT_EQ(::ptrace(PTRACE_DETACH, child.pid(), nullptr, nullptr), 0);
}

/// In a new pid namespace, with the /proc of the old one. The exit code says how it went.
enum Outcome { kNotTold, kTold, kNoNamespace };
[[noreturn]] void look_from_another_namespace() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
    ::_exit(kNoNamespace);
  }
  const pid_t first = ::fork();  // 1 there; it has a child, so there is something to tell
  if (first == 0) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
    }
    const Result<std::vector<pid_t>> found = children();
    ::_exit(!found.ok() && found.failure().error_number == ENOENT ? kNotTold
                                                                  : kTold);  // takes the child
  }
  int status = 0;
  ::waitpid(first, &status, 0);
  ::_exit(first > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : kNoNamespace);
}

TEST(Children, AreNotToldWhereProcBelongsToAnotherPidNamespace) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    look_from_another_namespace();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespace) {
    GTEST_SKIP() << "no pid namespace may be made here";
  }
  EXPECT_EQ(WEXITSTATUS(status), kNotTold);
}

TEST(Ancestor, IsFoundByItsName) {
  const Result<std::string> own = read_file("/proc/" + std::to_string(::getppid()) + "/comm");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(ancestor_named(own->substr(0, own->size() - 1)), ::getppid());
  EXPECT_EQ(ancestor_named("no such process"), std::nullopt);
}

}  // namespace
}  // namespace argosy::os
