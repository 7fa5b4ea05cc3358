#include "argosy/os/signals.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

using namespace std::chrono_literals;

TEST(Signals, InWords) {
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_EQ(signal_name(63), "signal 63");
  EXPECT_EQ(describe_signal(SIGKILL), "SIGKILL (often the out-of-memory killer)");
  EXPECT_EQ(describe_signal(SIGSEGV), "SIGSEGV (invalid memory access)");
  EXPECT_EQ(describe_signal(SIGUSR1), "SIGUSR1");
}

TEST(SignalFd, DeliversBlockedSignalsInsteadOfActing) {
  SignalFd signals = *SignalFd::create({SIGTERM, SIGUSR1});
  EXPECT_FALSE(signals.next());
  ::kill(::getpid(), SIGTERM);  // would end the test
  ASSERT_TRUE(*wait_ready(signals.fd(), POLLIN, Deadline::after(10s)));
  EXPECT_EQ(signals.next(), SIGTERM);
  EXPECT_FALSE(signals.next());
}

TEST(SignalFd, RestoresTheMask) {
  const auto blocked = [] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return ::sigismember(&mask, SIGUSR2) == 1;
  };
  {
    const SignalFd signals = *SignalFd::create({SIGUSR2});
    EXPECT_TRUE(blocked());
  }
  EXPECT_FALSE(blocked());
}

TEST(Signals, WritingToAClosedPipeIsAnError) {
  ignore_write_signals();
  Pipe pipe = *make_pipe();
  pipe.read.close();
  EXPECT_EQ(write_all(pipe.write.get(), "x").failure().error_number, EPIPE);
}

}  // namespace
}  // namespace argosy::os
