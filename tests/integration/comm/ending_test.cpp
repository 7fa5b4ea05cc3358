/// A program that never says goodbye still ends cleanly: no abort, no hang, its own exit code.
#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/subprocess.h"

#include "tests/support/temp_dir.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  os::Exit exit{};
  std::string output{};
};

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<Ended> run(const std::string& way, int size) {
  const test::TempDir folder;
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / ENDING_PROGRAM;
  std::vector<os::Subprocess> children;
  std::vector<std::filesystem::path> logs;
  for (int rank = 0; rank < size; ++rank) {
    logs.push_back(folder.path() / std::to_string(rank));
    const os::UniqueFd log(open(logs.back().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    auto child = os::Subprocess::spawn({.args = {program.string(),
                                                 way,
                                                 std::to_string(rank),
                                                 std::to_string(size),
                                                 (folder.path() / "store").string()},
                                        .env = os::environ_list(),
                                        .stdout_fd = log.get(),
                                        .stderr_fd = log.get()});
    children.push_back(*std::move(child));
  }
  const Deadline deadline = Deadline::after(50s);
  std::vector<Ended> ended;
  for (size_t rank = 0; rank < children.size(); ++rank) {
    const auto exit = *children[rank].wait(deadline);
    EXPECT_TRUE(exit.has_value()) << "rank " << rank << " hangs:\n" << contents(logs[rank]);
    ended.push_back({exit.value_or(os::Exit{-1, 0}), contents(logs[rank])});
  }
  return ended;
}

class EndingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EndingTest, EndsWithZeroAndWithoutAWord) {
  for (const Ended& rank : run(GetParam(), 2)) {
    EXPECT_TRUE(rank.exit.ok()) << rank.exit.shell_code() << "\n" << rank.output;
    EXPECT_EQ(rank.output, "");
  }
}
INSTANTIATE_TEST_SUITE_P(Ways,
                         EndingTest,
                         ::testing::Values("return", "destroy", "global", "leaked", "child"));

class QueuedEndingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(QueuedEndingTest, AnOperationNobodyWaitsForDoesNotHoldTheEndUp) {
  for (const Ended& rank : run(GetParam(), 2)) {
    EXPECT_TRUE(rank.exit.ok()) << rank.exit.shell_code() << "\n" << rank.output;
    EXPECT_THAT(rank.output, Not(HasSubstr("terminate")));
  }
}
INSTANTIATE_TEST_SUITE_P(Ways, QueuedEndingTest, ::testing::Values("queued", "global_queued"));

TEST(Ending, EvenALeakedGroupSaysGoodbye) {
  const std::vector<Ended> ranks = run("leaked_and_missed", 2);
  EXPECT_TRUE(ranks[0].exit.ok()) << ranks[0].output;
  EXPECT_EQ(ranks[1].exit.code, 1);
  EXPECT_THAT(ranks[1].output, HasSubstr("rank 0 left the group while others still needed it"));
}

TEST(Ending, ExitKeepsItsCode) {
  for (const Ended& rank : run("exit", 2)) {
    EXPECT_EQ(rank.exit.code, 3) << rank.output;
    EXPECT_EQ(rank.exit.signal, 0) << rank.output;
  }
}

TEST(Ending, AnExceptionThatMainCatchesIsAllThatIsSeen) {
  for (const Ended& rank : run("throws", 2)) {
    EXPECT_EQ(rank.exit.code, 1) << rank.output;
    EXPECT_EQ(rank.exit.signal, 0) << rank.output;
    EXPECT_THAT(rank.output, HasSubstr("caught: the user's own trouble"));
    EXPECT_THAT(rank.output, Not(HasSubstr("terminate")));
  }
}

TEST(Ending, AnExceptionThatNobodyCatchesShowsItsOwnWords) {
  for (const Ended& rank : run("throws_uncaught", 2)) {
    EXPECT_EQ(rank.exit.signal, SIGABRT) << rank.output;
    EXPECT_THAT(rank.output, HasSubstr("what():  the user's own trouble"));
    EXPECT_THAT(rank.output, Not(HasSubstr("without an active exception")));
  }
}

TEST(Ending, OneProcessNeedsNobody) {
  for (const char* way : {"return", "global", "queued"}) {
    const Ended alone = run(way, 1).front();
    EXPECT_TRUE(alone.exit.ok()) << way << "\n" << alone.output;
  }
}

}  // namespace
}  // namespace argosy
