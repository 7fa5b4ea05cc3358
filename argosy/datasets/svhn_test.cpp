#include <bit>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/test_mat.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kU8Class = 9;
constexpr uint32_t kU8Type = 2;
constexpr size_t kPicture = size_t{32} * 32 * 3;

/// A set of `labels`: pixel (y, x) of channel c of picture n is y + 3 x + 50 c + 7 n.
class Svhn : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& labels, int32_t side = 32) {
    std::string pixels;
    for (size_t i = 0; i < labels.size() * kPicture; ++i) {
      const size_t y = i % 32, x = i / 32 % 32, c = i / 1024 % 3, n = i / kPicture;
      pixels += static_cast<char>(y + 3 * x + 50 * c + 7 * n);
    }
    const auto count = static_cast<int32_t>(labels.size());
    std::vector<int32_t> dims{side, 1024 / side, 3};
    if (count > 1) {
      dims.push_back(count);
    }
    std::ofstream(folder_.path() / name, std::ios::binary)
        << out.header() << out.compressed(out.matrix(kU8Class, dims, "X", kU8Type, pixels))
        << out.compressed(out.matrix(kU8Class, {count, 1}, "y", kU8Type, labels));
  }
  [[nodiscard]] std::string path() const { return folder_.path().string(); }

  formats::MatWriter out{std::endian::little};
  test::TempDir folder_{};
};

TEST_F(Svhn, PicturesAreRowsAndTenIsTheDigitZero) {
  write("train_32x32.mat", "\x01\x0a\x09");
  write("test_32x32.mat", "\x05");
  EXPECT_EQ(recognise(path()), "svhn");
  EXPECT_EQ(recognise(path() + "/test_32x32.mat"), "svhn");
  const auto digits = open("svhn", {.path = path()});
  ASSERT_EQ(digits->about().splits.size(), 2U);
  EXPECT_EQ(digits->about().splits[0].name, "train");
  EXPECT_EQ(digits->about().splits[1].first, 3);
  EXPECT_EQ(digits->about().classes[9], "9");
  EXPECT_EQ(digits->label(0), 1);
  EXPECT_EQ(digits->label(1), 0);
  EXPECT_EQ(digits->label(3), 5);
  const image::Image picture = digits->picture(2);
  EXPECT_EQ(picture.size(), (image::Size{.height = 32, .width = 32}));
  const auto* pixel = picture.row<uint8_t>(4) + 3 * 20;
  EXPECT_EQ(pixel[0], 4 + 60 + 14);
  EXPECT_EQ(pixel[1], 4 + 60 + 50 + 14);
  EXPECT_EQ(pixel[2], 4 + 60 + 100 + 14);
  EXPECT_EQ(open("svhn", {.path = path() + "/test_32x32.mat"})->about().splits[0].name, "test");
}

TEST_F(Svhn, APublishedFileIsReadWhenItsSplitIsAskedFor) {
  write("train_32x32.mat", "\x01\x0a\x09");
  const auto extra = folder_.path() / "extra_32x32.mat";
  std::ofstream(extra).close();
  std::filesystem::resize_file(extra, 1329278602);  // zeros that take no room on the disk
  const auto digits = open("svhn", {.path = path()});
  ASSERT_EQ(digits->about().splits.size(), 2U);
  EXPECT_EQ(digits->about().splits[1].count, 531131);
  EXPECT_EQ(digits->size(), 531134);
  EXPECT_EQ(digits->label(1), 0);
  std::filesystem::resize_file(extra, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(test::error_text<DataError>([&] { (void)digits->label(3); }),
                AllOf(HasSubstr("extra_32x32.mat"), HasSubstr("not a MATLAB 5 file")));
  }
}

TEST_F(Svhn, WhatDoesNotFitIsNamed) {
  const auto text = [&] {
    return test::error_text<DataError>([&] { (void)open("svhn", {.path = path()}); });
  };
  EXPECT_THAT(text(), HasSubstr("train_32x32.mat"));
  write("train_32x32.mat", "\x01\x0b");
  EXPECT_THAT(text(), HasSubstr("expected a label 1 to 10, got 11"));
  write("train_32x32.mat", std::string("\x01\x00", 2));
  EXPECT_THAT(text(), HasSubstr("expected a label 1 to 10, got 0"));
  write("train_32x32.mat", "\x01\x02", 16);
  EXPECT_THAT(text(),
              HasSubstr("expected X to be bytes of 32 x 32 x 3 x 2 for 2 labels, got 16 x"));
}

}  // namespace
}  // namespace argosy::datasets
