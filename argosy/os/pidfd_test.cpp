#include "argosy/os/pidfd.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "argosy/os/unix_socket.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;

TEST(Pidfd, TellsOfTheEndOfAnotherProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)send_message(theirs.get(), "me", std::array{own_pidfd()->get()});
    ::pause();
  }
  const Result<Message> message = receive_message(ours.get(), Deadline::after(20s));
  ASSERT_EQ(message->fds.size(), 1U);
  const int pidfd = message->fds[0].get();
  EXPECT_FALSE(has_ended(pidfd));
  EXPECT_FALSE(has_ended(own_pidfd()->get()));
  ::kill(child, SIGKILL);
  const Result<bool> ended = wait_ready(pidfd, POLLIN, Deadline::after(20s));
  EXPECT_TRUE(*ended);
  EXPECT_TRUE(has_ended(pidfd));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_ended(pidfd));
}

}  // namespace
}  // namespace argosy::os
