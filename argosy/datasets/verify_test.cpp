#include "argosy/datasets/verify.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
namespace fs = std::filesystem;

constexpr const char* kMd5OfAbc = "900150983cd24fb0d6963f7d28e17f72";  // RFC 1321, A.5

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class VerifyTest : public ::testing::Test {
 protected:
  CheckedFile check(const std::string& text) {
    write(folder_.path() / "abc", text);
    return check_file((folder_.path() / "abc").string(), known_);
  }
  test::TempDir folder_{};
  PublishedFile known_{"abc", {3, kMd5OfAbc}};
};

TEST_F(VerifyTest, AFileIsFineMissingOrDamagedAndSaysWhy) {
  EXPECT_EQ(check_file((folder_.path() / "abc").string(), known_).state, FileState::kMissing);
  EXPECT_EQ(check("abc").state, FileState::kFine);
  const CheckedFile changed = check("abd");
  EXPECT_EQ(changed.state, FileState::kDamaged);
  EXPECT_EQ(changed.reason,
            "expected MD5 900150983cd24fb0d6963f7d28e17f72, got 4911e516e5aa21d327512e0c8b197616");
  EXPECT_EQ(check("ab").reason, "expected 3 bytes, got 2");
  fs::remove(folder_.path() / "abc");
  fs::create_directory(folder_.path() / "abc");
  EXPECT_EQ(check_file((folder_.path() / "abc").string(), known_).reason, "is not a regular file");
}

TEST_F(VerifyTest, ADistributionsOwnPackingIsRightToo) {
  known_ = {"abc", {9, "not this"}, {{3, kMd5OfAbc}}};
  EXPECT_EQ(check("abc").state, FileState::kFine);
  EXPECT_EQ(check("abd").state, FileState::kDamaged);
}

TEST_F(VerifyTest, ASetIsFineWhenAllItsFilesAre) {
  const Row set{.name = "s", .title = "", .files = {known_, {"def", {3, kMd5OfAbc}}}};
  write(folder_.path() / "abc", "abc");
  const Verified half = verify(set, folder_.path().string());
  EXPECT_FALSE(half.fine());
  EXPECT_EQ(half.files.at(0).state, FileState::kFine);
  EXPECT_EQ(half.files.at(1).state, FileState::kMissing);
  write(folder_.path() / "def", "abc");
  EXPECT_TRUE(verify(set, folder_.path().string()).fine());
}

TEST_F(VerifyTest, OfAlternativesThoseThatAreThereAreTold) {
  const Row set{.name = "s",
                .title = "",
                .files = {known_, {"def", {3, kMd5OfAbc}}},
                .one_file_is_enough = true};
  EXPECT_THAT(verify(set, folder_.path().string()).files, SizeIs(1));
  EXPECT_FALSE(verify(set, folder_.path().string()).fine());
  write(folder_.path() / "def", "abc");
  const Verified one = verify(set, folder_.path().string());
  EXPECT_TRUE(one.fine());
  ASSERT_THAT(one.files, SizeIs(1));
  EXPECT_EQ(one.files[0].known.name, "def");
}

TEST_F(VerifyTest, AFolderIsTakenForTheSetThatItLooksLike) {
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)verify_path(folder_.path().string()); }),
              HasSubstr("has no file of a known set"));
  write(folder_.path() / "t10k-labels-idx1-ubyte.gz", std::string(5148, 'x'));
  EXPECT_EQ(verify_path(folder_.path().string()).set, "fashion_mnist");
  write(folder_.path() / "t10k-labels-idx1-ubyte.gz", std::string(4542, 'x'));
  EXPECT_EQ(verify_path(folder_.path().string()).set, "mnist");
}

TEST_F(VerifyTest, AFileIsTakenForWhatItsNameSays) {
  const fs::path path = folder_.path() / "cifar-10-binary.tar.gz";
  write(path, "torn");
  const Verified verified = verify_path(path.string());
  EXPECT_EQ(verified.set, "cifar10");
  EXPECT_EQ(verified.files.at(0).reason, "expected 170052171 bytes, got 4");
  write(folder_.path() / "abc", "abc");
  EXPECT_THAT(
      test::error_text<UsageError>([&] { (void)verify_path((folder_.path() / "abc").string()); }),
      AllOf(HasSubstr("is not one of the published files"), HasSubstr(kMd5OfAbc)));
}

TEST(Rows, AreWholeAndEachNameAndMd5IsThereOnce) {
  std::set<std::string> names;
  std::set<std::string> sums;
  for (const Row* row : rows()) {
    const Row& set = *row;
    EXPECT_TRUE(names.insert(set.name).second) << set.name;
    EXPECT_EQ(set.files.empty(), !set.instead.empty()) << set.name;
    EXPECT_NE(set.open, nullptr) << set.name;
    EXPECT_EQ(set.mean.size(), set.std.size()) << set.name;
    EXPECT_TRUE(set.mean.size() == 1 || set.mean.size() == 3) << set.name;
    EXPECT_EQ(set.files.empty(), set.addresses.empty()) << set.name;
    for (const std::string& address : set.addresses) {
      EXPECT_TRUE(address.ends_with('/')) << address;
    }
    for (const PublishedFile& file : set.files) {
      EXPECT_TRUE(sums.insert(file.published.md5).second) << file.name;
      EXPECT_THAT(file.published.md5, testing::MatchesRegex("[0-9a-f]{32}")) << file.name;
      EXPECT_GT(file.published.bytes, 0) << file.name;
    }
  }
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST(Rows, TheRealFilesAreThePublishedOnes) {
  const fs::path data = ARGOSY_SHARED_DATA;
  EXPECT_TRUE(verify("mnist", (data / "mnist").string()).fine());
  const Verified flowers = verify("flowers102", (data / "flowers102").string());
  EXPECT_EQ(flowers.files.at(0).state, FileState::kDamaged) << "a subset";
  EXPECT_EQ(flowers.files.at(1).state, FileState::kFine);
  EXPECT_EQ(flowers.files.at(2).state, FileState::kFine);
}
#endif

TEST(KnownSets, DebiansFashionMnistIsRightAsItIsPacked) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  ASSERT_TRUE(fs::exists(folder)) << "install the package dataset-fashion-mnist";
  EXPECT_TRUE(verify_path(folder.string()).fine());
}

}  // namespace
}  // namespace argosy::datasets
