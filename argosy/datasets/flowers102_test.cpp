#include "argosy/datasets/flowers102.h"

#include <bit>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_files.h"
#include "argosy/formats/test_mat.h"

namespace argosy::datasets {
namespace {

using formats::MatWriter;
using formats::TestFile;
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
  [[nodiscard]] Flowers102Index read(Flowers102Options options = {}) const {
    const TestFile label_file(out.header() +
                              out.compressed(out.matrix(kDouble,
                                                        {1, static_cast<int32_t>(labels.size())},
                                                        "labels",
                                                        kU8Type,
                                                        {labels.begin(), labels.end()})));
    const TestFile split_file(out.header() + array("trnid", trnid) + array("valid", valid) +
                              array("tstid", tstid));
    return read_flowers102(label_file.path(), split_file.path(), options);
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
  const Flowers102Index index = read({.splits = FlowersSplits::kPaddle});
  EXPECT_THAT(index.train, ElementsAre(1, 6, 5));
  EXPECT_THAT(index.valid, ElementsAre(4, 3));
  EXPECT_THAT(index.test, ElementsAre(2));
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
