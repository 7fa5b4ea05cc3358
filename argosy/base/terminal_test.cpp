#include "argosy/base/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <gtest/gtest.h>

namespace argosy {
namespace {

// NOLINTBEGIN(concurrency-mt-unsafe): one thread

/// The two ends of a pseudoterminal 72 characters wide, in a UTF-8 locale.
class Terminal : public ::testing::Test {
 protected:
  void SetUp() override {
    winsize size{.ws_row = 20, .ws_col = 72, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::openpty(&ends_[0], &ends_[1], nullptr, nullptr, &size), 0);
    file_ = ::open("/dev/null", O_WRONLY);
    ASSERT_GE(file_, 0);
    ::unsetenv("LC_ALL");
    ::unsetenv("LC_CTYPE");
    ::unsetenv("COLUMNS");
    ::setenv("LANG", "en_GB.UTF-8", 1);
    ::setenv("TERM", "xterm", 1);
  }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
    ::close(file_);
  }
  [[nodiscard]] int terminal() const { return ends_[1]; }
  [[nodiscard]] int file() const { return file_; }

 private:
  std::array<int, 2> ends_{};
  int file_ = -1;
};

TEST_F(Terminal, RedrawsUnlessItIsDumbOrNone) {
  EXPECT_TRUE(terminal::redraws(terminal()));
  EXPECT_FALSE(terminal::redraws(file()));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal::redraws(terminal()));
  EXPECT_FALSE(terminal::type_redraws());
  ::unsetenv("TERM");
  EXPECT_FALSE(terminal::redraws(terminal()));
}

TEST_F(Terminal, ShowsBlocksWhereTheLocaleSaysUtf8) {
  EXPECT_TRUE(terminal::shows_blocks(terminal()));
  EXPECT_FALSE(terminal::shows_blocks(file()));
  ::setenv("LC_ALL", "C", 1);  // goes before LANG
  EXPECT_FALSE(terminal::shows_blocks(terminal()));
  ::setenv("LC_ALL", "C.utf8", 1);
  EXPECT_TRUE(terminal::shows_blocks(terminal()));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal::shows_blocks(terminal()));
}

TEST_F(Terminal, ColumnsAreTheTerminalsElseWhatCOLUMNSSaysElse80) {
  ::setenv("COLUMNS", "100", 1);
  EXPECT_EQ(terminal::columns(terminal()), 72);
  EXPECT_EQ(terminal::columns(file()), 100);
  ::setenv("COLUMNS", "3", 1);
  EXPECT_EQ(terminal::columns(file()), 10);
  ::setenv("COLUMNS", "99999999", 1);
  EXPECT_EQ(terminal::columns(file()), 1000);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(terminal::columns(file()), 80);
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal::columns(file()), 80);
}

// NOLINTEND(concurrency-mt-unsafe)

}  // namespace
}  // namespace argosy
