#include "argosy/os/whole_file.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/failing_call.h"
#include "tests/support/temp_dir.h"

namespace argosy::os {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
namespace fs = std::filesystem;

/// With a name at once and when it is finished, each beside an older file of that name.
class WholeFileTest : public testing::TestWithParam<WholeFileOptions::Name> {
 protected:
  void SetUp() override { std::ofstream(path_) << "old"; }

  /// Names and contents of the folder's files.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> files() const {
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      std::ifstream file(entry.path(), std::ios::binary);
      found.emplace_back(entry.path().filename(),
                         std::string(std::istreambuf_iterator<char>(file), {}));
    }
    return found;
  }

  const test::TempDir folder_;
  const std::string path_ = (folder_.path() / "a b.rec").string();
};

TEST_P(WholeFileTest, TheOldFileStaysUntilItIsFinished) {
  WholeFile file = *WholeFile::create(path_, {.name = GetParam()});
  file.write(std::string_view("new"));
  EXPECT_EQ(files().size(), GetParam() == WholeFileOptions::Name::kAtOnce ? 2U : 1U);
  EXPECT_THAT(files(), testing::Contains(Pair("a b.rec", "old")));
  ASSERT_TRUE(file.commit().ok());
  EXPECT_THAT(files(), ElementsAre(Pair("a b.rec", "new")));
}

TEST_P(WholeFileTest, AHeaderIsRewrittenWhenItsCountsAreKnown) {
  WholeFile file = *WholeFile::create(path_, {.name = GetParam()});
  file.write(std::string_view("????:"));
  const std::string body(3 << 20, 'x');
  file.write(body);
  file.rewrite(1, std::as_bytes(std::span(std::string_view("123"))));
  file.write(std::string_view("end"));
  EXPECT_EQ(file.position(), 5 + (3 << 20) + 3);
  ASSERT_TRUE(file.commit().ok());
  EXPECT_THAT(files(), ElementsAre(Pair("a b.rec", "?123:" + body + "end")));
}

TEST_P(WholeFileTest, UnfinishedItLeavesNothing) {
  { WholeFile::create(path_, {.name = GetParam()})->write(std::string(3 << 20, 'x')); }
  EXPECT_THAT(files(), ElementsAre(Pair("a b.rec", "old")));
}

// Another machine or container that writes into the folder may have a process of the same number.
TEST_P(WholeFileTest, AnothersFilesInTheMakingAreLeftAlone) {
  for (int i = 0; i < 100; ++i) {
    std::ofstream(fmt::format("{}.{}.{}.tmp", path_, ::getpid(), i)) << "another's";
  }
  WholeFile file = *WholeFile::create(path_, {.name = GetParam()});
  file.write(std::string_view("another's"));
  ASSERT_TRUE(file.commit().ok());
  EXPECT_EQ(files().size(), 101U);
  EXPECT_THAT(files(), Each(Pair(testing::_, "another's")));
}

TEST_P(WholeFileTest, AFolderThatIsNotThereIsToldAtOnce) {
  const auto file = WholeFile::create((folder_.path() / "no/such").string(), {.name = GetParam()});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.failure().what, "cannot write: No such file or directory (ENOENT)");
}

// What a full disk does: the first failure stays, nothing is put in place.
TEST_P(WholeFileTest, TheFirstFailureOfAWriteIsReportedAndTheOldFileStays) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit { .rlim_cur = 1 << 20, .rlim_max = 1 << 20 };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    WholeFile file = *WholeFile::create(path_, {.name = GetParam()});
    file.write(std::string(3 << 20, 'x'));
    file.write(std::string_view("a little more"));
    const bool kept = file.status().failure().error_number == EFBIG;
    ::_exit(kept && !file.commit().ok() && file.position() == (3 << 20) + 13 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  fs::remove(fmt::format("{}.{}.0.tmp", path_, child));  // the child did not end by itself
  EXPECT_THAT(files(), testing::Contains(Pair("a b.rec", "old")));
}

// Large files are brought to the disk while they are written. What the system says then, it does
// not say again.
TEST_P(WholeFileTest, AnErrorOfTheDiskIsReportedWhereItIsTold) {
  std::thread([&] {
    ASSERT_TRUE(test::fail_calls(SYS_sync_file_range, EIO));
    WholeFile file = *WholeFile::create(path_, {.name = GetParam()});
    file.write(std::string(7 << 20, 'x'));
    EXPECT_TRUE(file.status().ok());
    file.write(std::string(2 << 20, 'x'));
    EXPECT_EQ(file.status().failure().error_number, EIO);
    EXPECT_FALSE(file.commit().ok());
  }).join();
  EXPECT_THAT(files(), ElementsAre(Pair("a b.rec", "old")));
}

// Some file systems cannot.
TEST_P(WholeFileTest, WhereNothingCanBeSentAheadItIsWrittenAllTheSame) {
  const std::string bytes(20 << 20, 'x');
  std::thread([&] {
    ASSERT_TRUE(test::fail_calls(SYS_sync_file_range, ENOSYS));
    ASSERT_TRUE(write_whole(path_, bytes, {.name = GetParam()}).ok());
  }).join();
  EXPECT_EQ(fs::file_size(path_), bytes.size());
}

TEST_P(WholeFileTest, AFolderInItsPlaceIsToldAndNothingIsLeft) {
  fs::remove(path_);
  fs::create_directory(path_);
  {
    WholeFile file = *WholeFile::create(path_, {.name = GetParam()});
    EXPECT_FALSE(file.commit().ok());
  }
  EXPECT_TRUE(fs::is_empty(path_));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

// Ctrl-C, the end of a job, memory that ran out.
TEST(WholeFileKilled, LeavesNothingWhereTheFileSystemHasNamelessFiles) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "new").string();
  const pid_t child = ::fork();
  if (child == 0) {
    WholeFile file = *WholeFile::create(path);
    file.write(std::string(3 << 20, 'x'));
    // One that got a name at once shows by now.
    const bool nameless = fs::is_empty(folder.path());
    if (!nameless) {
      ::_exit(77);
    }
    std::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << folder.path() << " is on a file system without nameless files";
  }
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(Names,
                         WholeFileTest,
                         testing::Values(WholeFileOptions::Name::kWhenCommitted,
                                         WholeFileOptions::Name::kAtOnce),
                         [](const auto& info) {
                           return info.param == WholeFileOptions::Name::kAtOnce ? "AtOnce"
                                                                                : "WhenCommitted";
                         });

}  // namespace
}  // namespace argosy::os
