// Whose the folder of a file store is, and who can read what is in it.
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/store_kinds.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::rendezvous {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kSomebody = 12345;

class FileFolderTest : public testing::Test {
 protected:
  [[nodiscard]] std::string refusal() const {
    return test::error_text<ConfigError>([&] { (void)file_store(path_); });
  }
  static unsigned mode_of(const fs::path& path) {
    return static_cast<unsigned>(fs::symlink_status(path).permissions()) & 0777U;
  }

  test::TempDir home_;
  std::string path_ = (home_.path() / "store").string();
};

TEST_F(FileFolderTest, IsForItsOwnerOnly) {
  const mode_t before = ::umask(0);
  const auto store = file_store(path_);
  store->set("key", "secret", soon());
  const auto presence = store->announce("rank/0", soon());
  store->announce("rank/1", soon())->leave("secret", soon());
  ::umask(before);
  EXPECT_EQ(mode_of(path_), 0700U);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
    EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? 0700U : 0600U) << entry.path();
  }
}

TEST_F(FileFolderTest, OfAnotherUserIsRefused) {
  const bool root = ::geteuid() == 0;
  const std::string foreign = root ? path_ : "/usr/lib";
  if (root) {
    fs::create_directory(path_);
    ASSERT_EQ(::chown(path_.c_str(), kSomebody, kSomebody), 0);
  }
  const std::string text = test::error_text<ConfigError>([&] { (void)file_store(foreign); });
  EXPECT_THAT(
      text,
      AllOf(HasSubstr(foreign + " belongs to user " + std::to_string(root ? kSomebody : 0)),
            HasSubstr("expected a folder of this process's user " + std::to_string(::geteuid())),
            HasSubstr("Give file:// a path that does not exist yet")));
  EXPECT_TRUE(!root || fs::is_empty(path_));
}

// As on NFS with root_squash: what this process makes there belongs to another user's number.
TEST_F(FileFolderTest, OfThisProcessUnderAnotherNumberIsTaken) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make files of another user";
  }
  ASSERT_EQ(::chown(home_.path().c_str(), kSomebody, kSomebody), 0);
  ::setfsuid(kSomebody);
  std::string value;
  for (int time = 0; time < 2; ++time) {  // makes it; finds it
    const auto store = file_store(path_);
    value += std::to_string(store->add("key", 1, soon()));
  }
  struct stat folder {};
  ASSERT_EQ(::stat(path_.c_str(), &folder), 0);
  ::setfsuid(0);
  EXPECT_EQ(folder.st_uid, kSomebody);
  EXPECT_EQ(value, "12");
}

TEST_F(FileFolderTest, OfThisUserThatOthersCouldWriteIntoIsClosedToThem) {
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms::all);
  (void)file_store(path_);
  EXPECT_EQ(mode_of(path_), 0700U);
}

TEST_F(FileFolderTest, ARefusedFolderIsLeftAsItWas) {
  fs::create_directory(path_);
  std::ofstream(path_ + "/index.html") << "somebody's";
  fs::permissions(path_, fs::perms::all);
  EXPECT_THAT(refusal(), HasSubstr("is no store"));
  EXPECT_EQ(mode_of(path_), 0777U);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 1);
}

TEST_F(FileFolderTest, DoesNotGrowWithMembersThatWereForgotten) {
  const auto store = file_store(path_);
  store->announce("stays", soon())->leave("note", soon());
  uintmax_t size = 0;
  for (int i = 0; i < 5; ++i) {
    store->announce("group/rank/1", soon())->leave("", soon());
    (void)store->remove("group/rank/1", soon());
    const uintmax_t now = fs::file_size(path_ + "/departures");
    EXPECT_EQ(now, i == 0 ? now : size);
    size = now;
  }
  EXPECT_EQ(store->departures("", soon()).size(), 1U);
}

TEST_F(FileFolderTest, BehindALinkIsRefused) {
  const fs::path target = home_.path() / "target";
  fs::create_directory(target);
  fs::create_symlink(target, path_);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(path_ + " is a symbolic link"), HasSubstr("file://")));
  path_ += "/";  // the kernel would follow it then
  EXPECT_THAT(refusal(), HasSubstr("is a symbolic link"));
  EXPECT_TRUE(fs::is_empty(target));
}

TEST_F(FileFolderTest, LinksInItAreNotFollowed) {
  const fs::path other = home_.path() / "other";
  std::ofstream(other) << "mine";
  const auto store = file_store(path_);
  fs::create_symlink(other, fs::path(path_) / "values" / "key");
  fs::create_symlink(other, fs::path(path_) / "departures");
  EXPECT_THAT(test::error_text<RendezvousError>([&] { (void)store->get("key", soon()); }),
              HasSubstr("(ELOOP)"));
  EXPECT_THAT(test::error_text<RendezvousError>(
                  [&] { store->announce("rank/1", soon())->leave("", soon()); }),
              HasSubstr("(ELOOP)"));
  std::string content;
  std::ifstream(other) >> content;
  EXPECT_EQ(content, "mine");
}

TEST_F(FileFolderTest, AFolderInItThatIsALinkIsRefused) {
  (void)file_store(path_);
  fs::remove(fs::path(path_) / "values");
  fs::create_directory_symlink(home_.path(), fs::path(path_) / "values");
  EXPECT_THAT(test::error_text<RendezvousError>([&] { (void)file_store(path_); }),
              HasSubstr("/values"));
}

TEST_F(FileFolderTest, ASlashBehindItMeansTheSameFolder) {
  file_store(path_ + "//")->set("key", "value", soon());
  EXPECT_EQ(file_store(path_)->get("key", soon()), "value");
  EXPECT_FALSE(file_store(path_ + "/")->describe().ends_with("/"));
}

}  // namespace
}  // namespace argosy::rendezvous
