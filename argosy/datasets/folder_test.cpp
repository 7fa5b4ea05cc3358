#include "argosy/datasets/folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class FolderScan : public testing::Test {
 protected:
  test::TempDir dir_;
  std::string root_ = dir_.path().string();

  void add(const std::string& name) {
    fs::create_directories((dir_.path() / name).parent_path());
    std::ofstream(dir_.path() / name) << "x";
  }
  [[nodiscard]] std::vector<std::string> samples(const FolderOptions& options = {}) const {
    std::vector<std::string> found;
    for (const FolderSample& sample : scan_class_folder(root_, options).samples) {
      found.push_back(std::to_string(sample.label) + " " + sample.path.substr(root_.size() + 1));
    }
    return found;
  }
  [[nodiscard]] std::string complaint(const FolderOptions& options = {}) const {
    try {
      (void)scan_class_folder(root_, options);
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(FolderScan, SortsAsTorchvisionDoes) {
  // Folders sort by their whole path ('-' before '/'), files within each of them; capitals first.
  for (const char* name : {"dog/b.jpg",
                           "dog/A.PNG",
                           "dog/sub/0.webp",
                           "dog/sub/deep/1.jpg",
                           "dog/sub-1/z.ppm",
                           "cat/2.jpeg",
                           "cat/10.tif",
                           "Zebra/x.bmp"}) {
    add(name);
  }
  EXPECT_THAT(scan_class_folder(root_).classes, ElementsAre("Zebra", "cat", "dog"));
  EXPECT_THAT(samples(),
              ElementsAre("0 Zebra/x.bmp",
                          "1 cat/10.tif",
                          "1 cat/2.jpeg",
                          "2 dog/A.PNG",
                          "2 dog/b.jpg",
                          "2 dog/sub/0.webp",
                          "2 dog/sub-1/z.ppm",
                          "2 dog/sub/deep/1.jpg"));
}

TEST_F(FolderScan, OnlyImagesCountAndFilesBesideTheClassesDoNot) {
  add("readme.jpg");
  add("a/notes.txt");
  add("a/1.jpg");
  add("a/1.jpg.part");
  EXPECT_THAT(samples(), ElementsAre("0 a/1.jpg"));
  add("a/x.dcm");
  EXPECT_THAT(samples({.extensions = {".DCM"}}), ElementsAre("0 a/x.dcm"));
}

TEST_F(FolderScan, ATrailingSlashChangesNothing) {
  add("a/1.jpg");
  EXPECT_EQ(scan_class_folder(root_ + "//").samples[0].path, root_ + "/a/1.jpg");
}

TEST_F(FolderScan, ImageFolderListsAllWithoutClasses) {
  for (const char* name : {"b/1.jpg", "2.jpg", "b/c/0.jpg", "a/9.jpg"}) {
    add(name);
  }
  const auto images = scan_image_folder(root_);
  EXPECT_THAT(
      images,
      ElementsAre(root_ + "/2.jpg", root_ + "/a/9.jpg", root_ + "/b/1.jpg", root_ + "/b/c/0.jpg"));
}

TEST_F(FolderScan, LinksAreFollowed) {
  add("real/1.jpg");
  fs::create_directory_symlink(dir_.path() / "real", dir_.path() / "linked");
  fs::create_symlink(dir_.path() / "real/1.jpg", dir_.path() / "real/2.jpg");
  EXPECT_THAT(samples(),
              ElementsAre("0 linked/1.jpg", "0 linked/2.jpg", "1 real/1.jpg", "1 real/2.jpg"));
}

TEST_F(FolderScan, ALinkInACircleIsAnError) {
  add("a/b/1.jpg");
  fs::create_directory_symlink(dir_.path() / "a", dir_.path() / "a/b/again");
  EXPECT_THAT(complaint(),
              AllOf(HasSubstr("/a/b/again: a link that leads back to a folder that it lies in"),
                    HasSubstr("[datasets.folder]")));
  EXPECT_THROW((void)scan_image_folder(root_), DataError);
}

TEST_F(FolderScan, LinksThatDoubleWithEachLevelEndAtALimit) {
  // 14 folders with two links each to the next: 8,192 ways to the last; 40 of them had no end.
  constexpr int kLevels = 14;
  const test::TempDir elsewhere;
  const auto level = [&](int i) { return elsewhere.path() / std::to_string(i); };
  for (int i = 0; i < kLevels; ++i) {
    fs::create_directory(level(i));
  }
  for (int i = 0; i + 1 < kLevels; ++i) {
    fs::create_directory_symlink(level(i + 1), level(i) / "a");
    fs::create_directory_symlink(level(i + 1), level(i) / "b");
  }
  add("class/1.jpg");
  fs::create_directory_symlink(level(0), dir_.path() / "class/links");
  EXPECT_THAT(complaint(), HasSubstr("links lead to this folder from more than 1000 places"));
}

TEST_F(FolderScan, ALinkToNowhereIsAnErrorIfItIsAnImage) {
  add("a/1.jpg");
  fs::create_symlink("nowhere", dir_.path() / "a/notes.txt");
  EXPECT_EQ(complaint(), "none");
  fs::create_symlink("nowhere", dir_.path() / "a/2.jpg");
  EXPECT_THAT(complaint(), HasSubstr("/a/2.jpg: a link that leads nowhere"));
}

TEST_F(FolderScan, ALinkToItselfIsALinkToNowhere) {
  add("a/1.jpg");
  fs::create_symlink("self.jpg", dir_.path() / "a/self.jpg");
  EXPECT_THAT(complaint(), HasSubstr("/a/self.jpg: a link that leads nowhere"));
}

TEST_F(FolderScan, ClassesWithoutImagesAreNamed) {
  add("a/1.jpg");
  add("b/1.txt");
  fs::create_directory(dir_.path() / "c");
  EXPECT_THAT(complaint(),
              HasSubstr("2 of 3 classes have no image: b, c. Expected files that end in .jpg"));
  const ClassFolder kept = scan_class_folder(root_, {.absent = Absent::kSkip});
  EXPECT_THAT(kept.classes, ElementsAre("a", "b", "c"));
  EXPECT_EQ(kept.samples.size(), 1U);
}

TEST_F(FolderScan, EmptyAndAbsentFoldersSayWhatIsExpected) {
  EXPECT_THAT(complaint(), HasSubstr("no class folders: expected ROOT/CLASS/IMAGE"));
  try {
    (void)scan_image_folder(root_);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no image in the folder and below"));
  }
  const std::string root = root_;
  root_ = root + "/absent";
  EXPECT_THAT(complaint(), HasSubstr("/absent: no such folder"));
  EXPECT_THROW((void)scan_image_folder(root_), DataError);
  add("file");
  root_ = root + "/file";
  EXPECT_THAT(complaint(), HasSubstr("/file: expected a folder"));
}

TEST_F(FolderScan, AnUnreadableFolderSaysWhy) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root reads every folder";
  }
  add("a/1.jpg");
  add("b/1.jpg");
  fs::permissions(dir_.path() / "b", fs::perms::none);
  const std::string words = complaint();
  fs::permissions(dir_.path() / "b", fs::perms::owner_all);
  EXPECT_THAT(words, HasSubstr("/b: cannot list the folder: Permission denied (EACCES)"));
}

}  // namespace
}  // namespace argosy::datasets
