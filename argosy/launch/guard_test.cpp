#include "argosy/launch/guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "argosy/os/subprocess.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

/// A shell with a child, both holding `alive` open as their standard output.
Result<os::Subprocess> family(const Guard& guard, int alive, const std::string& script) {
  return os::Subprocess::spawn({.args = {"/bin/sh", "-c", script},
                                .env = os::environ_list(),
                                .stdout_fd = alive,
                                .pid_fd = guard.pid_fd()});
}

bool all_gone(const os::UniqueFd& alive) {
  EXPECT_TRUE(os::set_nonblocking(alive.get()).ok());
  return os::read_to_end(alive.get(), 100, Deadline::after(20s)).ok();
}

TEST(Guard, KillsRanksAndTheirChildrenWhenTheLauncherIsKilled) {
  os::Pipe alive = *os::make_pipe();
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const Guard guard = *Guard::start();
    auto rank = family(guard, alive.write.get(), "trap '' TERM HUP INT; sleep 1000 & sleep 1000");
    ::kill(::getpid(), SIGKILL);
  }
  alive.write.close();
  ASSERT_EQ(::waitpid(launcher, nullptr, 0), launcher);
  EXPECT_TRUE(all_gone(alive.read));
}

TEST(Guard, LeavesForgottenGroupsAloneAndEndsWithItsOwner) {
  os::Pipe alive = *os::make_pipe();
  pid_t guard_pid = 0;
  std::optional<os::Subprocess> rank;
  {
    const Guard guard = *Guard::start();
    guard_pid = guard.pid();
    rank.emplace(*family(guard, alive.write.get(), "exec sleep 1000"));
  }
  EXPECT_EQ(::kill(guard_pid, 0), -1);  // reaped
  EXPECT_FALSE(*rank->wait(Deadline::after(20ms)));
}

TEST(Guard, TellsThatItWasKilled) {
  Guard guard = *Guard::start();
  EXPECT_FALSE(guard.lost());
  ::kill(guard.pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(guard.pid()), &info, WEXITED | WNOWAIT),
            0);  // a zombie
  EXPECT_TRUE(guard.lost());
  EXPECT_TRUE(guard.lost());
  EXPECT_EQ(::kill(guard.pid(), 0), -1);
}

TEST(Guard, AStoppedOneHoldsNobodyUp) {
  pid_t pid = 0;
  {
    const Guard guard = *Guard::start();
    pid = guard.pid();
    ::kill(pid, SIGSTOP);
    ASSERT_EQ(::waitpid(pid, nullptr, WUNTRACED), pid);  // it has stopped
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace argosy::launch
