#include "argosy/os/signal_flag.h"

#include <csignal>
#include <cstdint>

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

int own_handler_calls = 0;

TEST(SignalFlag, NotesTheSignalAndTheProcessLives) {
  const SignalFlag flag({SIGTERM, SIGUSR1});
  EXPECT_EQ(flag.received(), 0);
  ::raise(SIGUSR1);
  EXPECT_EQ(flag.received(), SIGUSR1);
  ::raise(SIGTERM);
  EXPECT_EQ(flag.received(), SIGTERM);
}

TEST(SignalFlag, AfterItTheSignalEndsTheProcessAgain) {
  { const SignalFlag flag({SIGTERM}); }
  EXPECT_EXIT(::raise(SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalFlag, ALaterSigintEndsTheProcess) {
  static int64_t now = 7000;
  const SignalFlag flag({SIGINT}, [] { return now; });
  ::raise(SIGINT);
  now += 300;
  ::raise(SIGINT);  // the same request, once more
  EXPECT_EQ(flag.received(), SIGINT);
  EXPECT_EXIT(
      {
        ++now;
        ::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT),
      "");
}

TEST(SignalFlag, ANewOneKnowsNothingOfEarlierSignals) {
  {
    const SignalFlag flag({SIGUSR1});
    ::raise(SIGUSR1);
  }
  const SignalFlag flag({SIGUSR1});
  EXPECT_EQ(flag.received(), 0);
}

TEST(SignalFlag, LeavesTheProgramsOwnHandlerAlone) {
  ::signal(SIGUSR1, [](int) { ++own_handler_calls; });
  {
    const SignalFlag flag({SIGUSR1});
    ::raise(SIGUSR1);
    EXPECT_EQ(flag.received(), 0);
  }
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(own_handler_calls, 1);
}

TEST(SignalFlag, ASecondOneTakesNoSignalsFromTheFirst) {
  const SignalFlag first({SIGUSR1});
  {
    const SignalFlag second({SIGUSR1});
    ::raise(SIGUSR1);
    EXPECT_EQ(second.received(), 0);
  }
  EXPECT_EQ(first.received(), SIGUSR1);
}

}  // namespace
}  // namespace argosy::os
