#include "argosy/os/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

using namespace std::chrono_literals;

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, ClosesOnceAndMoves) {
  Pipe pipe = *make_pipe();
  const int number = pipe.read.get();
  {
    UniqueFd moved(std::move(pipe.read));
    EXPECT_FALSE(pipe.read.valid());  // NOLINT(bugprone-use-after-move): what a move leaves behind
    EXPECT_EQ(moved.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  const int kept = pipe.write.release();
  pipe.write.close();
  EXPECT_TRUE(is_open(kept));
  ::close(kept);
}

TEST(UniqueFd, ClosingKeepsErrno) {
  UniqueFd bad(12345);
  errno = ENOENT;
  bad.close();
  EXPECT_EQ(errno, ENOENT);
}

TEST(Fd, EverythingIsClosedOnExec) {
  const Pipe pipe = *make_pipe();
  const UniqueFd file = *open_file("/dev/null", O_RDONLY);
  const UniqueFd copy = *duplicate(file.get());
  for (const int fd : {pipe.read.get(), pipe.write.get(), file.get(), copy.get()}) {
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
  }
}

TEST(Fd, FailedOpenNamesThePath) {
  const Result<UniqueFd> fd = open_file("/nowhere/file", O_RDONLY);
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.failure().what, "open /nowhere/file: No such file or directory (ENOENT)");
  EXPECT_EQ(fd.failure().error_number, ENOENT);
}

/// More than a pipe holds, so that both sides see partial transfers; both ends non-blocking, so
/// that both see EAGAIN; and a stream of signals without SA_RESTART, so that both see EINTR.
TEST(Fd, TransfersSurviveEagainEintrAndPartialIo) {
  Pipe pipe = *make_pipe();
  ASSERT_TRUE(set_nonblocking(pipe.read.get()).ok());
  ASSERT_TRUE(set_nonblocking(pipe.write.get()).ok());
  struct sigaction nothing {};
  struct sigaction before {};
  nothing.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &nothing, &before), 0);

  std::vector<std::byte> sent(3 << 20);
  for (size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<std::byte>(i * 2654435761U >> 24);
  }
  std::vector<std::byte> received(sent.size() + 1);
  const Deadline deadline = Deadline::after(20s);
  std::thread writer([&] {
    EXPECT_TRUE(write_all(pipe.write.get(), sent, deadline).ok());
    pipe.write.close();
  });
  const pthread_t reader = ::pthread_self();
  std::thread disturber([&] {
    for (int i = 0; i < 200; ++i) {
      ::pthread_kill(reader, SIGUSR1);
      ::pthread_kill(writer.native_handle(), SIGUSR1);
    }
  });
  disturber.join();
  const Result<size_t> count = read_all(pipe.read.get(), received, deadline);
  writer.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, sent.size());  // one byte short of the buffer: the end of the stream was seen
  received.resize(sent.size());
  EXPECT_TRUE(received == sent);
}

TEST(Fd, NonBlockingReadGivesUpAtItsDeadline) {
  const Pipe pipe = *make_pipe();
  ASSERT_TRUE(set_nonblocking(pipe.read.get()).ok());
  std::array<std::byte, 4> buffer{};
  const Result<size_t> got = read_all(pipe.read.get(), buffer, Deadline::after(10ms));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.failure().error_number, ETIMEDOUT);
}

TEST(Fd, WaitReadyTellsTimeoutFromHangUp) {
  Pipe pipe = *make_pipe();
  EXPECT_FALSE(*wait_ready(pipe.read.get(), POLLIN, Deadline::after(5ms)));
  pipe.write.close();
  EXPECT_TRUE(*wait_ready(pipe.read.get(), POLLIN, Deadline::after(10s)));
}

TEST(Fd, ReadToEndIsBounded) {
  Pipe pipe = *make_pipe();
  ASSERT_TRUE(write_all(pipe.write.get(), "12345").ok());
  pipe.write.close();
  const Result<std::string> text = read_to_end(pipe.read.get(), 4);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.failure().error_number, EFBIG);
}

TEST(Fd, ReadsVirtualFiles) {
  EXPECT_NE(read_file("/proc/self/status")->find("Pid:"), std::string::npos);
  EXPECT_EQ(read_file("/nowhere/file").failure().error_number, ENOENT);
}

}  // namespace
}  // namespace argosy::os
