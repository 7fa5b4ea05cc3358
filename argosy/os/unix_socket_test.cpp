#include "argosy/os/unix_socket.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/random.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class UnixSocketTest : public ::testing::Test {
 protected:
  static Deadline soon() { return Deadline::after(20s); }
  const std::string name_ = "argosy/test/" + random_hex(8);
  const MessageListener listener_ = *MessageListener::listen(name_);
};

TEST_F(UnixSocketTest, MessagesKeepTheirBoundsAndCarryDescriptors) {
  const pid_t child = ::fork();
  if (child == 0) {
    const UniqueFd fd = *connect_messages(name_);
    const Pipe pipe = *make_pipe();
    const bool sent = send_message(fd.get(), "one").ok() &&
                      send_message(fd.get(), "two", std::array{pipe.read.get()}).ok() &&
                      write_all(pipe.write.get(), "through the pipe").ok();
    ::_exit(sent ? 0 : 1);
  }
  const UniqueFd caller = *listener_.accept(soon());
  EXPECT_EQ(*user_of_peer(caller.get()), ::getuid());
  EXPECT_EQ(receive_message(caller.get(), soon())->text, "one");
  const Result<Message> second = receive_message(caller.get(), soon());
  EXPECT_EQ(second->text, "two");
  ASSERT_EQ(second->fds.size(), 1U);
  EXPECT_EQ(::fcntl(second->fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(*read_to_end(second->fds[0].get()), "through the pipe");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(receive_message(caller.get(), soon()).failure().error_number, ECONNRESET);
  EXPECT_EQ(send_message(caller.get(), "late").failure().error_number, EPIPE);
}

TEST_F(UnixSocketTest, WaitingEndsAtTheDeadline) {
  EXPECT_EQ(listener_.accept(Deadline::after(10ms)).failure().error_number, ETIMEDOUT);
  const UniqueFd fd = *connect_messages(name_);
  const UniqueFd caller = *listener_.accept(soon());
  EXPECT_EQ(receive_message(fd.get(), Deadline::after(10ms)).failure().error_number, ETIMEDOUT);
}

TEST_F(UnixSocketTest, NamesAreTakenOnceAndFreeAgain) {
  EXPECT_EQ(MessageListener::listen(name_).failure().error_number, EADDRINUSE);
  EXPECT_THAT(connect_messages(name_ + "/other").failure().what, HasSubstr("ECONNREFUSED"));
  EXPECT_EQ(MessageListener::listen("").failure().error_number, EINVAL);
  EXPECT_EQ(connect_messages(std::string(101, 'x')).failure().error_number, EINVAL);
  { const MessageListener other = *MessageListener::listen(name_ + "/other"); }
  EXPECT_TRUE(MessageListener::listen(name_ + "/other").ok());
}

TEST_F(UnixSocketTest, WhatIsTooLongIsRefusedAtBothEnds) {
  const UniqueFd fd = *connect_messages(name_);
  const UniqueFd caller = *listener_.accept(soon());
  EXPECT_EQ(send_message(fd.get(), std::string((64 << 10) + 1, 'x')).failure().error_number,
            EMSGSIZE);
  EXPECT_EQ(send_message(fd.get(), "").failure().error_number, EMSGSIZE);
  EXPECT_TRUE(send_message(fd.get(), std::string(64 << 10, 'x')).ok());
  EXPECT_EQ(receive_message(caller.get(), soon())->text.size(), size_t{64} << 10U);
}

}  // namespace
}  // namespace argosy::os
