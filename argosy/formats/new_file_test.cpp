#include "argosy/formats/new_file.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/temp_dir.h"

namespace argosy::formats {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
namespace fs = std::filesystem;

/// With a name at once and when it is finished, each beside an older file of that name.
class NewFileTest : public testing::TestWithParam<NewFile::Name> {
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

TEST_P(NewFileTest, TheOldFileStaysUntilItIsFinished) {
  NewFile file(path_, "formats.test", GetParam());
  file.write(std::string_view("new"));
  EXPECT_EQ(files().size(), GetParam() == NewFile::Name::kAtOnce ? 2U : 1U);
  EXPECT_THAT(files(), testing::Contains(Pair("a b.rec", "old")));
  file.finish();
  EXPECT_THAT(files(), ElementsAre(Pair("a b.rec", "new")));
}

TEST_P(NewFileTest, UnfinishedItLeavesNothing) {
  { NewFile(path_, "formats.test", GetParam()).write(std::string(3 << 20, 'x')); }
  EXPECT_THAT(files(), ElementsAre(Pair("a b.rec", "old")));
}

// Another machine or container that writes into the folder may have a process of the same number.
TEST_P(NewFileTest, AnothersFilesInTheMakingAreLeftAlone) {
  for (int i = 0; i < 100; ++i) {
    std::ofstream(fmt::format("{}.{}.{}.tmp", path_, ::getpid(), i)) << "another's";
  }
  NewFile file(path_, "formats.test", GetParam());
  file.write(std::string_view("another's"));
  file.finish();
  EXPECT_EQ(files().size(), 101U);
  EXPECT_THAT(files(), Each(Pair(testing::_, "another's")));
}

TEST_P(NewFileTest, AFolderThatIsNotThereIsToldAtOnce) {
  try {
    const NewFile file((folder_.path() / "no/such").string(), "formats.test", GetParam());
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot write: No such file or directory"));
  }
}

TEST_P(NewFileTest, AFolderInItsPlaceIsToldAndNothingIsLeft) {
  fs::remove(path_);
  fs::create_directory(path_);
  {
    NewFile file(path_, "formats.test", GetParam());
    EXPECT_THROW(file.finish(), DataError);
  }
  EXPECT_TRUE(fs::is_empty(path_));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

// Ctrl-C, the end of a job, memory that ran out.
TEST(NewFileKilled, LeavesNothingWhereTheFileSystemHasNamelessFiles) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "new").string();
  const pid_t child = ::fork();
  if (child == 0) {
    NewFile file(path, "formats.test");
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
                         NewFileTest,
                         testing::Values(NewFile::Name::kWhenFinished, NewFile::Name::kAtOnce),
                         [](const auto& info) {
                           return info.param == NewFile::Name::kAtOnce ? "AtOnce" : "WhenFinished";
                         });

}  // namespace
}  // namespace argosy::formats
