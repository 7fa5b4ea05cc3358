#include "argosy/launch/sink.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "argosy/os/signals.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

/// A pseudo-terminal that does not translate newlines: what arrives is what was sent.
struct Terminal {
  os::UniqueFd master;
  os::UniqueFd slave;
  explicit Terminal(unsigned short columns) {
    int ends[2];
    termios raw{};
    cfmakeraw(&raw);
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    EXPECT_EQ(::openpty(&ends[0], &ends[1], nullptr, &raw, &size), 0);
    master = os::UniqueFd(ends[0]);
    slave = os::UniqueFd(ends[1]);
    EXPECT_TRUE(os::set_nonblocking(master.get()).ok());
  }
  std::string read() const {
    std::string text(4096, '\0');
    const ssize_t got = ::read(master.get(), text.data(), text.size());
    return text.substr(0, got < 0 ? 0 : static_cast<size_t>(got));
  }
};

TEST(Sink, KeepsTheLiveLineBelowTheOthers) {
  const Terminal terminal(80);
  Sink sink(terminal.slave.get());
  ASSERT_TRUE(sink.terminal());
  EXPECT_EQ(sink.columns(), 80);
  sink.set_live("[rank 0] 10%");
  sink.flush();
  EXPECT_EQ(terminal.read(), "[rank 0] 10%");
  sink.set_live("[rank 0] 20%");
  sink.flush();
  EXPECT_EQ(terminal.read(), "\r\x1b[K[rank 0] 20%");
  sink.write("[rank 1] hello\n");
  sink.flush();
  EXPECT_EQ(terminal.read(), "\r\x1b[K[rank 1] hello\n[rank 0] 20%");
  sink.set_live("");
  sink.write("[rank 0] done\n");
  sink.flush();
  EXPECT_EQ(terminal.read(), "\r\x1b[K[rank 0] done\n");
}

TEST(Sink, CutsALiveLineThatWouldWrap) {
  const Terminal terminal(8);
  Sink sink(terminal.slave.get());
  sink.set_live("ääääääääää");
  sink.flush();
  EXPECT_EQ(terminal.read(), "äääääää");  // seven columns: the eighth would wrap on some terminals
}

TEST(Sink, ALiveLineThatIsCutLeavesNoColor) {
  const Terminal terminal(8);
  Sink sink(terminal.slave.get());
  sink.set_live("\x1b[31m1234567890\x1b[0m");
  sink.flush();
  EXPECT_EQ(terminal.read(), "\x1b[31m1234567\x1b[0m");
}

TEST(Sink, APipeHasNoLiveLine) {
  const os::Pipe pipe = *os::make_pipe();
  Sink sink(pipe.write.get());
  EXPECT_FALSE(sink.terminal());
  sink.set_live("10%");
  sink.write("line\n");
  sink.flush();
  EXPECT_FALSE(sink.pending());
  std::string text(100, '\0');
  text.resize(static_cast<size_t>(::read(pipe.read.get(), text.data(), text.size())));
  EXPECT_EQ(text, "line\n");
}

TEST(Sink, NeverBlocksAndLosesNothing) {
  os::Pipe pipe = *os::make_pipe();
  Sink sink(pipe.write.get());
  std::string expected;
  for (int i = 0; !sink.full(); ++i) {  // far more than the pipe holds, and nobody reads
    const std::string line = "line " + std::to_string(i) + "\n";
    expected += line;
    sink.write(line);
    sink.flush();
  }
  EXPECT_TRUE(sink.pending());
  EXPECT_EQ(::fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0);  // others share it
  std::string got;
  std::thread reader([&] { got = *os::read_to_end(pipe.read.get()); });
  while (sink.pending()) {
    ASSERT_TRUE(*os::wait_ready(sink.poll_fd(), POLLOUT, Deadline::after(20s)));
    sink.flush();
  }
  {
    Sink closed = std::move(sink);  // closes the second opening of the pipe
  }
  pipe.write.close();
  reader.join();
  EXPECT_TRUE(got == expected);
}

TEST(Sink, AClosedReaderIsNoError) {
  os::ignore_write_signals();
  os::Pipe pipe = *os::make_pipe();
  Sink sink(pipe.write.get());
  pipe.read.close();
  sink.write("x\n");
  sink.flush();
  EXPECT_TRUE(sink.broken());
  EXPECT_FALSE(sink.pending());
  sink.write("y\n");
  sink.flush();
  EXPECT_FALSE(sink.full());
  EXPECT_TRUE(Sink(987).broken());
}

TEST(Sink, TellsWhatBrokeIt) {
  os::UniqueFd full = *os::open_file("/dev/full", O_WRONLY);
  Sink sink(full.get());
  sink.write("x\n");
  sink.flush();
  EXPECT_TRUE(sink.broken());
  EXPECT_EQ(sink.error(), ENOSPC);
}

TEST(Sink, DevNullTakesEverythingAtOnce) {
  const os::UniqueFd null = *os::open_file("/dev/null", O_WRONLY);
  Sink sink(null.get());
  EXPECT_EQ(sink.poll_fd(), -1);
  sink.write(std::string(size_t{1} << 20, 'x'));
  sink.flush();
  EXPECT_FALSE(sink.pending());
}

TEST(Sink, AStoppedTerminalBlocksNobody) {
  const Terminal terminal(80);
  Sink sink(terminal.slave.get());
  ASSERT_GE(sink.poll_fd(), 0);
  while (!sink.full()) {  // nobody reads at the other end, as after Ctrl-S
    sink.write(std::string(size_t{1} << 16, 'x'));
    sink.flush();
  }
  EXPECT_TRUE(sink.pending());
  EXPECT_FALSE(sink.broken());
}

TEST(Sink, OneTargetForBothStreams) {
  const Terminal terminal(80);
  const Terminal other(80);
  const os::Pipe pipe = *os::make_pipe();
  const os::Pipe another = *os::make_pipe();
  EXPECT_TRUE(same_target(terminal.slave.get(), os::duplicate(terminal.slave.get())->get()));
  EXPECT_FALSE(same_target(terminal.slave.get(), other.slave.get()));
  EXPECT_TRUE(same_target(pipe.write.get(), os::duplicate(pipe.write.get())->get()));
  EXPECT_FALSE(same_target(pipe.write.get(), another.write.get()));
  EXPECT_FALSE(same_target(terminal.slave.get(), pipe.write.get()));
  EXPECT_FALSE(same_target(987, 987));
}

}  // namespace
}  // namespace argosy::launch
