// Damaged files of every format: an error or a picture, soon, in bounded memory.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/image/codec.h"
#include "argosy/image/codecs/test_images.h"
#include "argosy/image/jpeg_region.h"

namespace argosy::image {
namespace {

constexpr int kTruncations = 200;
constexpr int kFlips = 10000;
constexpr int64_t kSmall = int64_t{1} << 20;

struct Formats {
  const char* name;
  std::vector<const char*> files;
};

std::ostream& operator<<(std::ostream& out, const Formats& formats) {
  return out << formats.name;
}

/// Sanitizers keep what is freed.
void expect_bounded_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 512 << 10) << "KiB";
#endif
}

/// Decodes in every way; returns whether any gave a picture. Anything but DataError ends the test.
bool survive(const std::vector<uint8_t>& bytes, bool accept) {
  bool decoded = false;
  // A header may promise gigabytes; where damage is accepted they are written, too.
  const DecodeOptions options{.mode = static_cast<Mode>(bytes.back() % 3),
                              .orientation = Orientation::kApply,
                              .damaged = accept ? Damaged::kAccept : Damaged::kRaise,
                              .most_pixels = accept ? kSmall : Image::kMostPixels,
                              .most_working_bytes = int64_t{64} << 20};
  try {
    (void)decode(bytes, options);
    decoded = true;
  } catch (const DataError& error) {
    EXPECT_NE(std::strlen(error.what()), 0U);
  }
  try {
    (void)probe(bytes);
  } catch (const DataError& error) {
    EXPECT_NE(std::strlen(error.what()), 0U);
  }
  if (sniff(bytes) != Format::kJpeg) {
    return decoded;
  }
  static JpegRegionDecoder raising;
  static JpegRegionDecoder accepting({.damaged = Damaged::kAccept, .most_pixels = kSmall});
  JpegRegionDecoder& decoder = accept ? accepting : raising;
  for (const int reduction : {1, 8}) {
    try {
      const Size size = decoder.open(bytes).size;
      const Box box{size.height / 3, size.width / 3, (size.height + 1) / 2, (size.width + 1) / 2};
      (void)decoder.decode(
          box, {std::max(box.height / reduction, 1), std::max(box.width / reduction, 1)});
      decoded = true;
    } catch (const DataError& error) {
      EXPECT_NE(std::strlen(error.what()), 0U);
    }
  }
  return decoded;
}

class Damage : public testing::TestWithParam<Formats> {
 protected:
  void SetUp() override {
    for (const char* name : GetParam().files) {
      files_.push_back(test_bytes(name));
    }
  }
  void TearDown() override { expect_bounded_memory(); }
  std::vector<std::vector<uint8_t>> files_;
};

TEST_P(Damage, TruncatedAnywhereIsAnErrorOrAPicture) {
  for (const std::vector<uint8_t>& file : files_) {
    for (int i = 0; i < kTruncations; ++i) {
      std::vector<uint8_t> bytes = file;
      bytes.resize(std::max<size_t>(file.size() * static_cast<size_t>(i) / kTruncations, 1));
      (void)survive(bytes, i % 2 == 1);
      // The first eighth cannot be a picture.
      if (i < kTruncations / 8 && GetParam().name != std::string("BMP")) {
        EXPECT_FALSE(survive(bytes, false)) << i;
      }
    }
  }
}

TEST_P(Damage, FlippedBytesAreAnErrorOrAPicture) {
  std::mt19937 random(5);
  const auto pick = [&](size_t below) { return random() % below; };
  auto slowest = std::chrono::nanoseconds::zero();
  for (int i = 0; i < kFlips; ++i) {
    std::vector<uint8_t> bytes = files_[pick(files_.size())];
    const size_t flips = 1 + pick(4);
    for (size_t f = 0; f < flips; ++f) {
      // Half of them in the header, where the promises are.
      const size_t within = pick(2) == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
      bytes[pick(within)] = static_cast<uint8_t>(random());
    }
    const auto begin = std::chrono::steady_clock::now();
    (void)survive(bytes, i % 2 == 1);
    slowest = std::max<std::chrono::nanoseconds>(slowest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(slowest, std::chrono::seconds(10));
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    Damage,
    testing::Values(
        Formats{"JPEG",
                {"420.jpg",
                 "gray.jpg",
                 "progressive.jpg",
                 "restart.jpg",
                 "arithmetic.jpg",
                 "cmyk.jpg",
                 "exif_6.jpg"}},
        Formats{
            "PNG",
            {"rgb.png", "palette_transparent.png", "interlaced.png", "gray2.png", "exif_6.png"}},
        Formats{"TIFF",
                {"raw.tiff",
                 "lzw.tiff",
                 "deflate.tiff",
                 "palette.tiff",
                 "fax.tiff",
                 "jpeg.tiff",
                 "rgba.tiff"}},
        Formats{"WebP", {"lossy.webp", "lossless.webp", "rgba_lossy.webp", "exif_6.webp"}},
        Formats{"BMP", {"rgb24.bmp", "rgb565.bmp", "palette.bmp", "bits.bmp", "rgba32.bmp"}},
        Formats{"PNM", {"raw.ppm", "raw.pbm", "text.ppm", "text.pbm", "max5000.ppm"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace argosy::image
