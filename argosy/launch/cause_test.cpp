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
  EXPECT_THAT(advice_for({.exit = not_found}), HasSubstr("in PATH"));
  EXPECT_THAT(
      advice_for(
          {.exit = not_found,
           .last_lines = {"./train: error while loading shared libraries: libx.so.1: cannot open "
                          "shared object file: No such file or directory"}}),
      HasSubstr("ldd PROGRAM"));
  const std::string used_up = "RuntimeError: CUDA out of memory. Tried …";
  EXPECT_THAT(advice_for({.exit = {.code = 1}, .last_lines = {used_up, "done"}}),
              HasSubstr("smaller batches"));
  EXPECT_THAT(advice_for({.exit = {.code = 1}, .threw = used_up, .last_lines = {"#9 a stack"}}),
              HasSubstr("smaller batches"));
  EXPECT_EQ(advice_for({.exit = {.code = 1}, .last_lines = {"something else"}}), "");
  EXPECT_EQ(advice_for({}), "");
}

TEST(Cause, SignalsAndTheirShellsCodes) {
  for (const os::Exit& exit : {os::Exit{.signal = SIGBUS}, os::Exit{.code = 128 + SIGBUS}}) {
    EXPECT_THAT(advice_for({.exit = exit}), HasSubstr("/dev/shm"));
  }
  EXPECT_THAT(advice_for({.exit = {.signal = SIGKILL}}), HasSubstr("dmesg"));
  EXPECT_THAT(advice_for({.exit = {.signal = SIGKILL}, .out_of_memory = true}),
              HasSubstr("fewer ranks"));
}

}  // namespace
}  // namespace argosy::launch
