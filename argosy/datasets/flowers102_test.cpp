#include "argosy/datasets/flowers102.h"

#include <bit>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/test_archives.h"
#include "argosy/formats/test_files.h"
#include "argosy/formats/test_mat.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using formats::MatWriter;
using formats::TestFile;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kDouble = 6;
constexpr uint32_t kU8Type = 2;

class Flowers102 : public testing::Test {
 protected:
  MatWriter out{std::endian::little};
  std::vector<uint8_t> labels{77, 1, 102, 5, 5, 6};
  std::vector<uint16_t> trnid{2}, valid{4, 3}, tstid{1, 6, 5};

  [[nodiscard]] std::string array(const char* name, const std::vector<uint16_t>& ids) const {
    return out.compressed(
        out.matrix(kDouble, {1, static_cast<int32_t>(ids.size())}, name, 4, out.numbers(ids)));
  }
  [[nodiscard]] std::string label_file() const {
    return out.header() + out.compressed(out.matrix(kDouble,
                                                    {1, static_cast<int32_t>(labels.size())},
                                                    "labels",
                                                    kU8Type,
                                                    {labels.begin(), labels.end()}));
  }
  [[nodiscard]] std::string split_file() const {
    return out.header() + array("trnid", trnid) + array("valid", valid) + array("tstid", tstid);
  }
  [[nodiscard]] Flowers102Index read() const {
    return read_flowers102(TestFile(label_file()).path(), TestFile(split_file()).path());
  }
  [[nodiscard]] std::string complaint() const {
    try {
      (void)read();
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(Flowers102, LabelsCountFromZeroAndIdsFromOne) {
  const Flowers102Index index = read();
  EXPECT_THAT(index.labels, ElementsAre(76, 0, 101, 4, 4, 5));
  EXPECT_EQ(index.label(1), 76);
  EXPECT_THAT(index.train, ElementsAre(2));
  EXPECT_THAT(index.valid, ElementsAre(4, 3));
  EXPECT_THAT(index.test, ElementsAre(1, 6, 5));
  EXPECT_THROW((void)index.label(0), UsageError);
  EXPECT_THROW((void)index.label(7), UsageError);
}

TEST_F(Flowers102, PaddlesSplitsAreSwapped) {
  const test::TempDir folder;
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
  };
  write("imagelabels.mat", label_file());
  write("setid.mat", split_file());
  formats::TestMembers pictures;
  for (int64_t id = 1; id <= 6; ++id) {
    pictures.emplace_back(flowers102_picture(id), std::to_string(id));
  }
  write("102flowers.tar", formats::tar(pictures));
  const auto ids_of = [&](const char* split, const OpenOptions& options) {
    const auto flowers = open(flowers102(), options);
    const SplitRange part = find_split(*flowers, split);
    std::string ids;
    Scratch scratch;
    for (int64_t i = part.first; i < part.first + part.count; ++i) {
      const auto bytes = flowers->get(i, scratch).picture.bytes;
      ids.append(bytes.begin(), bytes.end());
    }
    return ids;
  };
  const std::string path = folder.path().string();
  EXPECT_EQ(ids_of("train", {.path = path}), "2");
  EXPECT_EQ(ids_of("test", {.path = path}), "165");
  const OpenOptions paddle{.path = path, .splits = FlowersSplits::kPaddle};
  EXPECT_EQ(ids_of("train", paddle), "165");
  EXPECT_EQ(ids_of("valid", paddle), "43");
  EXPECT_EQ(ids_of("test", paddle), "2");
}

TEST_F(Flowers102, PicturesThatTheArchiveLacksAreAnErrorOrPassedOver) {
  const test::TempDir folder;
  std::ofstream(folder.path() / "imagelabels.mat", std::ios::binary) << label_file();
  std::ofstream(folder.path() / "setid.mat", std::ios::binary) << split_file();
  std::ofstream(folder.path() / "102flowers.tar", std::ios::binary)
      << formats::tar({{flowers102_picture(3), "3"}});
  const std::string path = folder.path().string();
  EXPECT_THAT(test::error_text<DataError>([&] { (void)open(flowers102(), {.path = path}); }),
              AllOf(HasSubstr("[datasets.open] " + path + ": 5 of the 6 samples"),
                    HasSubstr("argosy data fetch flowers102 --replace")));
  const auto there = open(flowers102(), {.path = path, .absent = Absent::kSkip});
  EXPECT_EQ(there->size(), 1);
  EXPECT_EQ(there->about().missing, 5);
}

TEST_F(Flowers102, OptionsThatASetDoesNotTakeAreRefused) {
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { (void)open(cifar10(), {.path = "x", .absent = Absent::kSkip}); }),
              HasSubstr("[datasets.open] cifar10 has no option .absent"));
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { (void)open(flowers102(), {.path = "x", .points = Points::kDrop}); }),
              HasSubstr("flowers102 has no option .points"));
}

TEST_F(Flowers102, LabelsOutOfRangeAreNamed) {
  labels[2] = 103;
  EXPECT_THAT(complaint(), HasSubstr("expected a label 1 to 102, got 103 (sample 2)"));
  labels[2] = 0;
  EXPECT_THAT(complaint(), HasSubstr("got 0 (sample 2)"));
}

TEST_F(Flowers102, IdsOutOfRangeOrTwiceAreNamed) {
  tstid[1] = 7;
  EXPECT_THAT(complaint(),
              HasSubstr("tstid: expected an id 1 to 6, as there are labels, got 7 (sample 1)"));
  tstid[1] = 0;
  EXPECT_THAT(complaint(), HasSubstr("got 0"));
  tstid[1] = 2;
  EXPECT_THAT(complaint(), HasSubstr("tstid: id 2 is in a split for the second time"));
}

TEST(Flowers102Files, TheRealOnesAreWhatTheAuthorsSay) {
  const std::string folder = ARGOSY_TEST_DATA "/flowers102/";
  const Flowers102Index index = read_flowers102(folder + "imagelabels.mat", folder + "setid.mat");
  EXPECT_EQ(index.labels.size(), 8189U);
  EXPECT_EQ(index.train.size(), 1020U);
  EXPECT_EQ(index.valid.size(), 1020U);
  EXPECT_EQ(index.test.size(), 6149U);
  EXPECT_EQ(index.label(1), 76);
  std::vector<int> per_class(102);
  for (const int64_t id : index.train) {
    ++per_class.at(index.label(id));
  }
  EXPECT_THAT(per_class, testing::Each(10));
  EXPECT_EQ(flowers102_picture(index.train[0]), "jpg/image_06765.jpg");
  EXPECT_EQ(flowers102_picture(1), "jpg/image_00001.jpg");
}

}  // namespace
}  // namespace argosy::datasets
