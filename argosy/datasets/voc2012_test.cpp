#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/survey.h"
#include "argosy/datasets/test_voc2012.h"
#include "argosy/formats/test_archives.h"
#include "argosy/image/codec.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string jpeg() {
  const image::Image gray({.height = 8, .width = 8}, image::Order::kGray);
  const auto bytes = image::encode_jpeg(gray);
  return {bytes.begin(), bytes.end()};
}

/// Pictures a and b for training, c for validation: a dog and a person on a, only a dog that is
/// hard to see on b, a person on c.
class Voc2012 : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() {
    const auto file = folder_.path() / "VOCtrainval_11-May-2012.tar";
    testing::write_tar(file.string(), members);
    return file.string();
  }
  [[nodiscard]] std::string error() {
    const std::string file = path();
    return test::error_text<DataError>([&] { (void)open("voc2012", {.path = file}); });
  }

  formats::TestMembers members =
      testing::voc2012_members({{.name = "a", .jpeg = jpeg(), .classes = {"dog", "person"}},
                                {.name = "b", .jpeg = jpeg(), .difficult = {"dog"}}},
                               {{.name = "c", .jpeg = jpeg(), .classes = {"person"}}});
  test::TempDir folder_{};
};

TEST_F(Voc2012, APictureHasEveryClassThatIsOnIt) {
  const std::string file = path();
  EXPECT_EQ(recognise(file), "voc2012");
  EXPECT_EQ(recognise(folder_.path().string()), "voc2012");
  const auto photographs = open("voc2012", {.path = file});
  EXPECT_EQ(photographs->about().task, Task::kTags);
  EXPECT_EQ(photographs->about().classes, testing::kVocClasses);
  ASSERT_EQ(photographs->about().splits.size(), 2U);
  EXPECT_EQ(photographs->about().splits[0].count, 2);
  EXPECT_EQ(photographs->about().splits[1].name, "valid");
  Scratch scratch;
  EXPECT_THAT(photographs->get(0, scratch).labels, ElementsAre(11, 14));
  EXPECT_THAT(photographs->get(1, scratch).labels, IsEmpty());
  EXPECT_THAT(photographs->get(2, scratch).labels, ElementsAre(14));
  EXPECT_EQ(photographs->picture(2).width(), 8);
  const Survey found = survey(*photographs);
  EXPECT_EQ(found.per_class[11], 1);
  EXPECT_EQ(found.per_class[14], 2);
}

TEST_F(Voc2012, LinesThatAreNoneAndPicturesThatAreMissingAreNamed) {
  const auto& [name, text] = members[2 * 11];
  const std::string good = text;
  for (const char* bad : {"a\n", "a 2\n", "a 1 1\n", " 1\n", "a x\n", "\n"}) {
    members[2 * 11].second = good + bad;
    EXPECT_THAT(error(), HasSubstr("dog_train.txt: line 3: expected the name of a picture")) << bad;
  }
  members[2 * 11].second = good.substr(good.find('\n') + 1);
  EXPECT_THAT(error(),
              HasSubstr("expected a once in the list of each of 20 classes, got 19 lines"));
  members[2 * 11].second = good;
  members.pop_back();
  EXPECT_THAT(error(), HasSubstr("1 of the 3 samples"));
  EXPECT_EQ(open("voc2012", {.path = path(), .absent = Absent::kSkip})->size(), 2);
  members.erase(members.begin());
  EXPECT_THAT(error(), HasSubstr("aeroplane_train.txt"));
}

}  // namespace
}  // namespace argosy::datasets
