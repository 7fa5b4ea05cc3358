#include "argosy/launch/cause.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using testing::HasSubstr;

TEST(Cause, CodesThatMeanSomething) {
  EXPECT_EQ(describe_code(3), "");
  EXPECT_EQ(describe_code(128), "");
  EXPECT_EQ(describe_code(127), " (a command or a library that was not found)");
  EXPECT_EQ(describe_code(126), " (a command that cannot be executed)");
  EXPECT_EQ(describe_code(137), " (128 + 9: SIGKILL)");
  EXPECT_EQ(describe_code(255), "");
}

TEST(Cause, LastWordsTellMoreThanTheCode) {
  const os::Exit not_found{.code = 127};
  EXPECT_THAT(advice_for(not_found, false, {}), HasSubstr("in PATH"));
  EXPECT_THAT(advice_for(not_found,
                         false,
                         {"./train: error while loading shared libraries: libx.so.1: cannot open "
                          "shared object file: No such file or directory"}),
              HasSubstr("ldd PROGRAM"));
  EXPECT_THAT(advice_for({.code = 1}, false, {"RuntimeError: CUDA out of memory. Tried …", "done"}),
              HasSubstr("smaller batches"));
  EXPECT_EQ(advice_for({.code = 1}, false, {"something else"}), "");
  EXPECT_EQ(advice_for({.code = 0}, false, {}), "");
}

TEST(Cause, SignalsAndTheirShellsCodes) {
  for (const os::Exit& exit : {os::Exit{.signal = SIGBUS}, os::Exit{.code = 128 + SIGBUS}}) {
    EXPECT_THAT(advice_for(exit, false, {}), HasSubstr("/dev/shm"));
  }
  EXPECT_THAT(advice_for({.signal = SIGKILL}, false, {}), HasSubstr("dmesg"));
  EXPECT_THAT(advice_for({.signal = SIGKILL}, true, {}), HasSubstr("fewer ranks"));
}

}  // namespace
}  // namespace argosy::launch
