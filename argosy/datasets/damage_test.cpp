#include "argosy/datasets/damage.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/datasets/pack.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/survey.h"
#include "argosy/formats/packed_sample.h"
#include "argosy/formats/records.h"

#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

/// A folder of 150 pictures in two classes; numbers 3, 100 and 149 are damaged, each in its way.
class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    image::Image gray({.height = 3, .width = 5}, image::Order::kGray);
    const std::vector<uint8_t> png = image::encode_png(gray);
    for (int i = 0; i < 150; ++i) {
      std::string bytes(png.begin(), png.end());
      if (i == 3) {
        bytes.resize(bytes.size() - 20);  // ends early, its header is whole
      } else if (i == 100) {
        bytes = "no picture";
      } else if (i == 149) {
        bytes.clear();
      }
      const fs::path path = folder_.path() / "set" / (i < 75 ? "a" : "b");
      fs::create_directories(path);
      std::ofstream(path / (std::to_string(1000 + i) + ".png"), std::ios::binary) << bytes;
    }
    source_ = open("folder", {.path = (folder_.path() / "set").string()});
  }

  [[nodiscard]] std::string records() const { return (folder_.path() / "set.rec").string(); }

  /// Changes one byte of each of these records' pictures.
  void damage_records(const std::vector<int64_t>& indices) const {
    std::vector<int64_t> places;
    {
      const formats::RecordReader reader(records());
      for (const int64_t index : indices) {
        places.push_back(reader.record(index).data() - reader.record(0).data());
      }
      std::ifstream file(records(), std::ios::binary);
      const std::string all(std::istreambuf_iterator<char>(file), {});
      const auto first = reader.record(0);
      const size_t begin = all.find(std::string(reinterpret_cast<const char*>(first.data()), 64));
      for (int64_t& place : places) {
        place += static_cast<int64_t>(begin) + 8;
      }
    }
    std::fstream file(records(), std::ios::binary | std::ios::in | std::ios::out);
    for (const int64_t place : places) {
      file.seekg(place);
      const auto old = static_cast<char>(file.get());
      file.seekp(place);
      file.put(static_cast<char>(old ^ 1));
    }
  }

  const test::TempDir folder_;
  std::shared_ptr<const Source> source_{};
};

TEST_F(DamageTest, EveryPictureThatCannotBeReadIsNamedInOrder) {
  for (const int threads : {0, 1, 3}) {
    const std::vector<Damage> found =
        find_damage(*source_, {.count = source_->size()}, {.threads = threads});
    ASSERT_THAT(found, SizeIs(3));
    EXPECT_EQ(found[0].index, 3);
    EXPECT_THAT(found[0].reason, AllOf(HasSubstr("1003.png"), HasSubstr("(sample 3)")));
    EXPECT_EQ(found[1].index, 100);
    EXPECT_EQ(found[2].index, 149);
  }
}

TEST_F(DamageTest, OnlyTheSplitIsLookedAtAndProgressReachesItsEnd) {
  std::vector<int64_t> done;
  const std::vector<Damage> found =
      find_damage(*source_,
                  {.name = "part", .first = 4, .count = 97},
                  {.on_samples = [&](int64_t n) { done.push_back(n); }});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].index, 100);
  EXPECT_THAT(done, ElementsAre(64, 97));
}

TEST_F(DamageTest, PackedWithoutThemTheOthersStayInOrder) {
  EXPECT_EQ(pack(*source_, records(), {.leave_out = {3, 100, 149}}).samples, 147);
  const auto packed = open("records", {.path = records()});
  EXPECT_EQ(packed->size(), 147);
  EXPECT_EQ(packed->label(73), 0);
  EXPECT_EQ(packed->label(74), 1);
  EXPECT_THAT(find_damage(*packed, {.count = packed->size()}), IsEmpty());
}

TEST_F(DamageTest, WhatIsLeftOutIsTakenFromItsSplit) {
  pack(*source_, records(), {.leave_out = {3, 100, 149}});
  // A file of two splits, made of one without.
  const std::string two = (folder_.path() / "two.rec").string();
  {
    const auto packed = open("records", {.path = records()});
    formats::RecordWriter writer(
        two, formats::pack_metadata({.splits = {{"train", 100}, {"test", 47}}}));
    const formats::RecordReader reader(records());
    for (int64_t i = 0; i < packed->size(); ++i) {
      writer.append(reader.record(i));
    }
    writer.finish();
  }
  const auto source = open("records", {.path = two});
  pack(*source, records(), {.leave_out = {0, 99, 100}});
  const std::vector<SplitRange> splits = open("records", {.path = records()})->about().splits;
  ASSERT_THAT(splits, SizeIs(2));
  EXPECT_EQ(splits[0].count, 98);
  EXPECT_EQ(splits[1].count, 46);
  EXPECT_EQ(pack(*source, records(), {.split = "test", .leave_out = {0, 99, 100}}).samples, 46);
}

TEST_F(DamageTest, DamagedRecordsAreCountedAndTheOthersSurveyed) {
  pack(*source_, records(), {.leave_out = {3, 100, 149}});
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 12; ++i) {
    indices.push_back(1 + 10 * i);
  }
  damage_records(indices);
  const auto source = open("records", {.path = records()});
  for (const int threads : {1, 3}) {
    const Survey found = survey(*source, {.threads = threads});
    EXPECT_EQ(found.samples, 147);
    EXPECT_EQ(found.unusable, 12);
    EXPECT_EQ(found.damaged, 0);
    EXPECT_EQ(found.per_class[0] + found.per_class[1], 147 - 12);
    ASSERT_THAT(found.first_unusable, SizeIs(Survey::kMostTold));
    EXPECT_THAT(found.first_unusable[0], AllOf(HasSubstr("checksum"), HasSubstr("(sample 1)")));
    EXPECT_THAT(found.first_unusable[9], HasSubstr("(sample 91)"));
    EXPECT_EQ(found.width.most, 5);
  }
  const std::vector<Damage> damage = find_damage(*source, {.count = 147});
  ASSERT_THAT(damage, SizeIs(12));
  EXPECT_EQ(damage[11].index, 111);
}

}  // namespace
}  // namespace argosy::datasets
