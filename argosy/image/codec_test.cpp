#include "argosy/image/codec.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/image/codecs/test_images.h"
#include "argosy/image/jpeg_region.h"

#include "tests/support/error_text.h"

namespace argosy::image {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DecodeOptions options_of(const std::string& mode) {
  return {.mode = mode == "gray"  ? Mode::kGray
                  : mode == "rgb" ? Mode::kRgb
                                  : Mode::kAsItIs,
          .orientation = mode == "upright" ? Orientation::kApply : Orientation::kIgnore};
}

TEST(Codec, PixelsArePillowsInEveryFormatAndMode) {
  const std::vector<Golden> all = goldens();
  ASSERT_GT(all.size(), 150U);
  for (const Golden& golden : all) {
    const Image image = decode_file(test_image(golden.file), options_of(golden.mode));
    EXPECT_LE(largest_difference(image, golden), golden.bound)
        << golden.file << " " << golden.mode << ": " << image.height() << "x" << image.width()
        << "x" << image.channels();
  }
}

std::string message_of(const std::vector<uint8_t>& bytes, const DecodeOptions& options = {}) {
  return test::error_text<DataError>([&] { (void)decode(bytes, options); });
}

TEST(Codec, ProbeTellsWhatTheHeaderSays) {
  struct Case {
    const char* name;
    Format format;
    Size size;
    int channels;
    int bits;
  };
  const Case cases[] = {
      {"420.jpg", Format::kJpeg, {29, 37}, 3, 8},
      {"cmyk.jpg", Format::kJpeg, {29, 37}, 4, 8},
      {"gray.jpg", Format::kJpeg, {29, 37}, 1, 8},
      {"gray2.png", Format::kPng, {21, 33}, 1, 2},
      {"rgb16.png", Format::kPng, {9, 300}, 3, 16},
      {"palette.png", Format::kPng, {21, 33}, 1, 4},
      {"gray_alpha.png", Format::kPng, {21, 33}, 2, 8},
      {"rgba.tiff", Format::kTiff, {21, 33}, 4, 8},
      {"gray16.tiff", Format::kTiff, {9, 300}, 1, 16},
      {"fax.tiff", Format::kTiff, {21, 33}, 1, 1},
      {"rgba.webp", Format::kWebp, {21, 33}, 4, 8},
      {"lossy.webp", Format::kWebp, {21, 33}, 3, 8},
      {"rgb565.bmp", Format::kBmp, {21, 33}, 3, 8},
      {"bits.bmp", Format::kBmp, {21, 33}, 1, 1},
      {"raw.pbm", Format::kPnm, {21, 33}, 1, 1},
      {"max5000.ppm", Format::kPnm, {7, 9}, 3, 16},
  };
  for (const Case& wanted : cases) {
    const std::vector<uint8_t> bytes = test_bytes(wanted.name);
    const ImageInfo info = probe(bytes);
    EXPECT_EQ(sniff(bytes), wanted.format) << wanted.name;
    EXPECT_EQ(info.format, wanted.format) << wanted.name;
    EXPECT_EQ(info.size, wanted.size) << wanted.name;
    EXPECT_EQ(info.channels, wanted.channels) << wanted.name;
    EXPECT_EQ(info.bits, wanted.bits) << wanted.name;
    EXPECT_EQ(info.orientation, 1) << wanted.name;
  }
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string name = "exif_" + std::to_string(orientation) + ".jpg";
    EXPECT_EQ(probe(test_bytes(name)).orientation, orientation);
  }
  for (const char* name : {"exif_6.png", "exif_6.webp", "exif_6.tiff"}) {
    EXPECT_EQ(probe(test_bytes(name)).orientation, 6) << name;
  }
}

TEST(Codec, OrientationIsIgnoredUnlessAskedFor) {
  const Image stored = decode_file(test_image("exif_6.jpg"));
  EXPECT_EQ(stored.size(), (Size{13, 21}));
  const Image upright = decode_file(test_image("exif_6.jpg"), {.orientation = Orientation::kApply});
  EXPECT_EQ(upright.size(), (Size{21, 13}));
}

TEST(Codec, UnknownBytesAreNamed) {
  EXPECT_EQ(
      message_of({'h', 'e', 'l', 'l', 'o'}, {.name = "dir/hello.jpg"}),
      "[image.decode] dir/hello.jpg: unknown format: expected JPEG, PNG, TIFF, WebP, BMP or PNM, "
      "got bytes that begin with 68 65 6c 6c 6f (at byte 0)");
  EXPECT_THAT(message_of({}), HasSubstr("got an empty file"));
}

TEST(Codec, AFileThatCannotBeReadIsNamed) {
  try {
    (void)decode_file("no/such/file.png");
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, "no/such/file.png");
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[image.open]"), HasSubstr("ENOENT")));
  }
  EXPECT_THROW((void)decode_file(ARGOSY_TEST_DATA), DataError);  // a folder
}

TEST(Codec, APipeIsRefusedAndNobodyWaitsForItsWriter) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("argosy_pipe_" + std::to_string(::getpid()));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW((void)decode_file(path), DataError);
  std::filesystem::remove(path);
}

std::vector<uint8_t> first(std::vector<uint8_t> bytes, size_t count) {
  bytes.resize(count);
  return bytes;
}

TEST(Codec, ATruncatedFileSaysHowManyRowsCame) {
  const std::vector<uint8_t> jpeg = test_bytes("flower_1.jpg");
  EXPECT_THAT(message_of(first(jpeg, jpeg.size() / 2), {.name = "f.jpg"}),
              testing::ContainsRegex(
                  R"(^\[image\.jpeg\] f\.jpg: truncated; [1-9][0-9]* of 504 rows came)"));
  const std::vector<uint8_t> png = test_bytes("rgb.png");
  EXPECT_THAT(message_of(first(png, png.size() / 2)),
              testing::ContainsRegex(R"(^\[image\.png\] truncated; [0-9]+ of 21 rows came)"));
  const std::vector<uint8_t> ppm = test_bytes("raw.ppm");
  EXPECT_THAT(message_of(first(ppm, ppm.size() - 33 * 3 * 5 - 1)), HasSubstr("15 of 21 rows came"));
  const std::vector<uint8_t> bmp = test_bytes("rgb24.bmp");
  EXPECT_THAT(message_of(first(bmp, bmp.size() - 1)), HasSubstr("truncated; 20 of 21 rows came"));
  const std::vector<uint8_t> webp = test_bytes("lossy.webp");
  EXPECT_THAT(message_of(first(webp, webp.size() - 40)), HasSubstr("truncated; "));
  const std::vector<uint8_t> tiff = test_bytes("raw.tiff");
  EXPECT_THAT(message_of(first(tiff, tiff.size() / 2)), HasSubstr("[image.tiff]"));
}

TEST(Codec, WhatCameOfATruncatedFileIsKeptWhenAskedFor) {
  for (const char* name : {"flower_1.jpg", "rgb.png", "raw.ppm", "rgb24.bmp", "text.ppm"}) {
    const std::vector<uint8_t> bytes = test_bytes(name);
    const Image whole = decode(bytes);
    const Image part = decode(first(bytes, bytes.size() * 3 / 4), {.damaged = Damaged::kAccept});
    ASSERT_EQ(part.size(), whole.size()) << name;
    // A BMP begins with its last row.
    const int row = std::string(name) == "rgb24.bmp" ? whole.height() - 1 : 0;
    EXPECT_EQ(std::memcmp(part.row<uint8_t>(row), whole.row<uint8_t>(row), whole.row_bytes()), 0)
        << name;
    EXPECT_NE(std::memcmp(part.data(), whole.data(), whole.total_bytes()), 0) << name;
  }
}

TEST(Codec, CorruptDataIsAnErrorUnlessAccepted) {
  std::vector<uint8_t> bytes = test_bytes("flower_1.jpg");
  // An end marker in the middle: libjpeg only warns.
  bytes[bytes.size() / 2] = 0xff;
  bytes[bytes.size() / 2 + 1] = 0xd9;
  EXPECT_THAT(message_of(bytes, {.name = "f.jpg"}), HasSubstr("premature end of data segment"));
  EXPECT_EQ(decode(bytes, {.damaged = Damaged::kAccept}).size(), (Size{504, 501}));
}

/// As in Flowers-102: the end marker comes before the last rows, and bytes follow it.
TEST(Codec, OtherDamageThanATruncatedFileIsAcceptedWhenAskedFor) {
  std::vector<uint8_t> bytes = test_bytes("flower_1.jpg");
  const size_t at = bytes.size() * 2 / 3;
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), {0x00, 0xff, 0xd9});
  EXPECT_THROW((void)decode(bytes), DataError);
  const Image whole = decode(bytes, {.damaged = Damaged::kAccept});
  const Image same = decode(bytes, {.damaged = Damaged::kRaiseTruncated});
  EXPECT_EQ(std::memcmp(same.data(), whole.data(), whole.total_bytes()), 0);
  const Box all{0, 0, whole.height(), whole.width()};
  EXPECT_NO_THROW(
      (void)decode_region(bytes, all, whole.size(), {.damaged = Damaged::kRaiseTruncated}));
  bytes.resize(at);
  for (const Damaged damaged : {Damaged::kRaise, Damaged::kRaiseTruncated}) {
    EXPECT_THROW((void)decode(bytes, {.damaged = damaged}), DataError);
    EXPECT_THROW((void)decode_region(bytes, all, whole.size(), {.damaged = damaged}), DataError);
  }
}

TEST(Codec, LimitsAreCheckedBeforeAnythingIsAllocated) {
  for (const char* name :
       {"420.jpg", "rgb.png", "raw.tiff", "lossy.webp", "rgb24.bmp", "raw.ppm"}) {
    const std::vector<uint8_t> bytes = test_bytes(name);
    const Size size = probe(bytes).size;
    EXPECT_NO_THROW((void)decode(bytes, {.most_pixels = int64_t{size.height} * size.width}))
        << name;
    EXPECT_THAT(message_of(bytes, {.most_pixels = int64_t{size.height} * size.width - 1}),
                HasSubstr("too large"))
        << name;
  }
  for (const char* name : {"progressive.jpg", "lossless.webp", "raw.tiff"}) {
    EXPECT_THAT(message_of(test_bytes(name), {.most_working_bytes = 2000}),
                HasSubstr("most_working_bytes"))
        << name;
  }
}

TEST(Codec, AHeaderThatPromisesMoreThanItsBytesCanHoldNeedsNoMemory) {
  std::vector<uint8_t> png = test_bytes("rgb.png");
  png[18] = 0x20;  // 8192 + 33 columns
  png[22] = 0x20;
  EXPECT_THAT(message_of(png), HasSubstr("CRC error"));
  const auto sum = static_cast<uint32_t>(crc32(0, png.data() + 12, 17));
  for (size_t i = 0; i < 4; ++i) {
    png[29 + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
  }
  EXPECT_THAT(message_of(png), HasSubstr("bytes cannot hold"));
  constexpr std::array<uint8_t, 2> kFrame{0xff, 0xc0};
  std::vector<uint8_t> jpeg = test_bytes("420.jpg");
  const auto frame = std::search(jpeg.begin(), jpeg.end(), kFrame.begin(), kFrame.end());
  ASSERT_NE(frame, jpeg.end());
  frame[5] = 0x30;
  frame[7] = 0x30;
  EXPECT_THAT(message_of(jpeg), HasSubstr("which 1088 bytes cannot hold"));
  const std::string pnm = "P6 16000 16000 255\n12345";
  EXPECT_THAT(message_of({pnm.begin(), pnm.end()}), HasSubstr("0 of 16000 rows came"));
}

// Each scan goes over the whole picture: a few bytes could keep a processor busy for minutes.
TEST(Codec, ThousandsOfProgressiveScansEndWithAnError) {
  const std::vector<uint8_t> bytes = test_bytes("gray_progressive.jpg");
  const auto find = [&](std::vector<uint8_t>::const_iterator from, uint8_t marker) {
    while (from[0] != 0xff || from[1] != marker) {
      ++from;
    }
    return from;
  };
  const auto scan = find(bytes.begin(), 0xda);
  const auto next = std::find_if(scan + 2, bytes.end() - 1, [](const uint8_t& byte) {
    return byte == 0xff && (&byte)[1] != 0;
  });
  std::vector<uint8_t> many(bytes.begin(), next);
  for (int i = 0; i < 5000; ++i) {
    many.insert(many.end(), scan, next);
  }
  many.insert(many.end(), next, bytes.end());
  EXPECT_THAT(message_of(many, {.damaged = Damaged::kAccept}), HasSubstr("more than 100 scans"));
  EXPECT_THAT(message_of(many), HasSubstr("[image.jpeg]"));
}

TEST(Codec, EncodedPicturesComeBack) {
  for (const char* name : {"gray8.png", "rgb.png", "rgba.png"}) {
    const Image image = decode_file(test_image(name));
    const Image back = decode(encode_png(image));
    ASSERT_EQ(back.size(), image.size());
    ASSERT_EQ(back.order(), image.order());
    EXPECT_EQ(std::memcmp(back.data(), image.data(), image.total_bytes()), 0) << name;
  }
  Image bgr = decode_file(test_image("rgb.png"));
  Image rgb = bgr;
  for (int y = 0; y < bgr.height(); ++y) {
    for (int x = 0; x < bgr.width(); ++x) {
      std::swap(bgr.row<uint8_t>(y)[3 * x], bgr.row<uint8_t>(y)[3 * x + 2]);
    }
  }
  bgr.set_order(Order::kBgr);
  EXPECT_EQ(encode_png(bgr), encode_png(rgb));
  EXPECT_EQ(encode_jpeg(bgr, 90), encode_jpeg(rgb, 90));
  const Image flower = decode_file(test_image("flower_1.jpg"));
  const Image good = decode(encode_jpeg(flower, 95));
  double squares = 0;
  for (size_t i = 0; i < flower.total_bytes(); ++i) {
    const int d = static_cast<int>(flower.data()[i]) - static_cast<int>(good.data()[i]);
    squares += d * d;
  }
  EXPECT_LT(squares / static_cast<double>(flower.total_bytes()), 10);
  EXPECT_GT(encode_jpeg(flower, 95).size(), 2 * encode_jpeg(flower, 40).size());
  EXPECT_EQ(decode(encode_jpeg(decode_file(test_image("gray8.png")))).order(), Order::kGray);
}

TEST(Codec, EncodersRefuseWhatTheyCannotWrite) {
  EXPECT_THROW((void)encode_png(Image()), UsageError);
  EXPECT_THROW((void)encode_png(Image({2, 2}, Order::kRgb, Type::kF32)), UsageError);
  EXPECT_THROW((void)encode_jpeg(Image()), UsageError);
  EXPECT_THROW((void)encode_jpeg(Image({2, 2}, Order::kRgb), 0), UsageError);
  EXPECT_THROW((void)encode_jpeg(Image({2, 2}, Order::kRgb), 101), UsageError);
  EXPECT_THROW((void)encode_jpeg(Image({1, 70000}, Order::kGray)), UsageError);
}

TEST(WriteFile, TakesThePlaceOfTheOldOneAndLeavesNothingBeside) {
  const TestFolder folder;
  const std::string path = folder / "picture.png";
  std::ofstream(path) << "old";
  const std::vector<uint8_t> bytes = encode_png(decode_file(test_image("rgb.png")));
  write_file(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  const std::set<std::filesystem::path> files{std::filesystem::directory_iterator(folder.path()),
                                              {}};
  EXPECT_EQ(files.size(), 1U);
}

TEST(WriteFile, AFailureNamesThePathAndLeavesNothingBeside) {
  const TestFolder folder;
  EXPECT_THROW(write_file(folder / "no/such/picture.png", {}), DataError);
  std::filesystem::create_directory(folder / "taken");
  try {
    write_file(folder / "taken", {});
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, folder / "taken");
    EXPECT_THAT(error.what(), HasSubstr("[image.write]"));
  }
  const std::set<std::filesystem::path> files{std::filesystem::directory_iterator(folder.path()),
                                              {}};
  EXPECT_EQ(files.size(), 1U);
}

}  // namespace
}  // namespace argosy::image
