#include "argosy/image/jpeg_region.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/image/codecs/jpeg_entropy.h"
#include "argosy/image/codecs/jpeg_pixels.h"
#include "argosy/image/codecs/jpeg_reader.h"
#include "argosy/image/codecs/test_images.h"

namespace argosy::image {
namespace {

using codecs::JpegReader;
using testing::HasSubstr;

/// How a test's JPEG is written.
struct Writing {
  int down = 2;  // sampling factors of luma
  int across = 2;
  bool gray = false;
  bool progressive = false;
  bool arithmetic = false;
  bool optimized = false;
  unsigned restart = 0;
  J_COLOR_SPACE space = JCS_YCbCr;
};

/// A smooth picture with noise: runs of zeros, long codes and flat blocks all come.
std::vector<uint8_t> write_jpeg(Size size, const Writing& how, int quality = 90) {
  std::mt19937 random(7);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.input_components = how.gray ? 1 : 3;
  info.in_color_space = how.gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (!how.gray) {
    jpeg_set_colorspace(&info, how.space);
  }
  jpeg_set_quality(&info, quality, TRUE);
  info.comp_info[0].v_samp_factor = how.down;
  info.comp_info[0].h_samp_factor = how.across;
  info.arith_code = static_cast<boolean>(how.arithmetic);
  info.optimize_coding = static_cast<boolean>(how.optimized);
  info.restart_interval = how.restart;
  if (how.progressive) {
    jpeg_simple_progression(&info);
  }
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(size.width) * 3);
  for (int y = 0; y < size.height; ++y) {
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t column = i / 3;
      const auto x = static_cast<double>(column);
      const double wave =
          100 * std::sin(x / 9 + y / 13.0) * std::cos(y / 7.0 + static_cast<double>(i % 3));
      const int noise =
          (y / 24 + static_cast<int>(x) / 40) % 3 == 0 ? static_cast<int>(random() % 80) : 0;
      row[i] = static_cast<uint8_t>(std::clamp(128 + static_cast<int>(wave) + noise, 0, 255));
    }
    auto* pointer = row.data();
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  std::vector<uint8_t> out(bytes, bytes + count);
  std::free(bytes);
  jpeg_destroy_compress(&info);
  return out;
}

struct Named {
  std::string name;
  Writing how;
};

const std::vector<Named>& kinds() {
  static const std::vector<Named> all = {
      {"4:4:4", {.down = 1, .across = 1}},
      {"4:2:2", {.down = 1, .across = 2}},
      {"4:2:0", {}},
      {"4:1:1", {.down = 1, .across = 4}},
      {"4:4:0", {.down = 2, .across = 1}},
      {"4:1:0", {.down = 2, .across = 4}},
      {"gray", {.down = 1, .across = 1, .gray = true}},
      {"gray with factors 2 x 2", {.gray = true}},
      {"restarts", {.restart = 5}},
      {"restarts, gray", {.down = 1, .across = 1, .gray = true, .restart = 3}},
      {"progressive", {.progressive = true}},
      {"progressive gray", {.down = 1, .across = 1, .gray = true, .progressive = true}},
      {"arithmetic", {.arithmetic = true}},
      {"optimized codes", {.optimized = true}},
      {"RGB", {.down = 1, .across = 1, .space = JCS_RGB}},
  };
  return all;
}

/// libjpeg's own pixels of the whole picture at 1/reduction.
Image whole(const std::vector<uint8_t>& bytes, int reduction) {
  JpegReader reader;
  reader.open(bytes, {}, "");
  jpeg_decompress_struct& info = reader.info();
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(reduction);
  reader.run([&] { jpeg_start_decompress(&info); });
  Image image({static_cast<int>(info.output_height), static_cast<int>(info.output_width)},
              info.output_components == 1 ? Order::kGray : Order::kRgb);
  reader.run([&] {
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = image.row<uint8_t>(static_cast<int>(info.output_scanline));
      jpeg_read_scanlines(&info, &row, 1);
    }
  });
  return image;
}

Box random_box(std::mt19937& random, Size size) {
  const auto pick = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  Box box;
  box.height = pick(1, size.height);
  box.width = pick(1, size.width);
  box.top = pick(0, size.height - box.height);
  box.left = pick(0, size.width - box.width);
  return box;
}

/// Is `view` the part of `image` whose first pixel is (top, left)?
bool same_pixels(const RegionView& view, const Image& image, int top, int left) {
  const int channels = image.channels();
  for (int y = 0; y < view.size.height; ++y) {
    const uint8_t* wanted = image.row<uint8_t>(top + y) + left * channels;
    if (std::memcmp(view.pixels + static_cast<size_t>(y) * view.row_bytes,
                    wanted,
                    static_cast<size_t>(view.size.width) * channels) != 0) {
      return false;
    }
  }
  return true;
}

bool same_pixels(const Image& part, const Image& image, int top, int left) {
  return same_pixels({part.row<uint8_t>(0), part.row_bytes(), part.size()}, image, top, left);
}

std::string to_string(const Box& box) {
  return "rows " + std::to_string(box.top) + "+" + std::to_string(box.height) + " columns " +
         std::to_string(box.left) + "+" + std::to_string(box.width);
}

const std::vector<Size> kSizes = {{95, 133}, {64, 96}, {33, 200}, {17, 15}, {7, 9}};

/// Calls `check` with many boxes of pictures of each kind.
void with_boxes(
    int boxes,
    const std::function<void(
        const Named&, const std::vector<uint8_t>&, Size, const std::function<Box()>&)>& check) {
  std::mt19937 random(3);
  for (const Named& kind : kinds()) {
    for (const Size& size : kSizes) {
      const std::vector<uint8_t> bytes = write_jpeg(size, kind.how);
      int count = 0;
      for (int i = 0; i < boxes; ++i) {
        check(kind, bytes, size, [&] {
          // The whole, single pixels in the corners, then at random.
          switch (count++) {
            case 0:
              return Box{0, 0, size.height, size.width};
            case 1:
              return Box{size.height - 1, size.width - 1, 1, 1};
            case 2:
              return Box{0, size.width - 1, 1, 1};
            default:
              return random_box(random, size);
          }
        });
      }
    }
  }
}

void expect_regions(const JpegRegionOptions& options) {
  JpegRegionDecoder decoder(options);
  std::string last;
  Image full;
  with_boxes(40, [&](const Named& kind, const auto& bytes, Size size, const auto& next) {
    const std::string key = kind.name + std::to_string(size.width);
    if (key != last) {
      full = whole(bytes, 1);
      last = key;
    }
    const Box box = next();
    decoder.open(bytes);
    const RegionView view = decoder.decode(box, {box.height, box.width});
    ASSERT_EQ(view.reduction, 1);
    ASSERT_EQ(view.size, (Size{box.height, box.width}));
    ASSERT_EQ(view.window, (Window{0, 0, double(box.height), double(box.width)}));
    ASSERT_EQ(view.order, full.order());
    ASSERT_TRUE(same_pixels(view, full, box.top, box.left))
        << kind.name << " " << size.height << "x" << size.width << ", " << to_string(box);
  });
}

TEST(JpegRegion, IsThatPartOfTheWholeBitForBit) {
  expect_regions({});
}
TEST(JpegRegion, IsThatPartOfTheWholeWithLibjpegsEntropyDecoder) {
  expect_regions({.entropy = Entropy::kLibjpeg});
}

/// Does Argosy's own reader decode all of the picture?
bool reads_by_itself(const std::vector<uint8_t>& bytes, Size size) {
  codecs::JpegArea area;
  area.reader.open(bytes, {}, "");
  RegionView view;
  return codecs::decode_pixels(area, {0, 0, size.height, size.width}, Entropy::kOwn, view);
}

TEST(JpegRegion, BaselinePicturesAreReadByArgosyAndTheOthersByLibjpeg) {
  const Size size{95, 133};
  for (const Named& kind : kinds()) {
    const bool ours = !kind.how.progressive && !kind.how.arithmetic;
    EXPECT_EQ(reads_by_itself(write_jpeg(size, kind.how), size),
              ours && codecs::can_replace_entropy_decoder())
        << kind.name;
  }
}

TEST(JpegRegion, ReducedIsThatPartOfTheReducedWhole) {
  JpegRegionDecoder decoder;
  for (const int reduction : {2, 4, 8}) {
    with_boxes(12, [&](const Named& kind, const auto& bytes, Size, const auto& next) {
      const Box box = next();
      const Size wanted{std::max(box.height / reduction, 1), std::max(box.width / reduction, 1)};
      decoder.open(bytes);
      const RegionView view = decoder.decode(box, wanted);
      const int r = view.reduction;
      ASSERT_TRUE(r == 1 || (box.height >= r * wanted.height && box.width >= r * wanted.width));
      const Image full = whole(bytes, r);
      const int top = box.top / r;
      const int left = box.left / r;
      ASSERT_TRUE(same_pixels(view, full, top, left))
          << kind.name << " 1/" << r << ", " << to_string(box);
      // The window is the box, and lies inside.
      EXPECT_DOUBLE_EQ(view.window.top + top, double(box.top) / r);
      EXPECT_DOUBLE_EQ(view.window.left + left, double(box.left) / r);
      EXPECT_DOUBLE_EQ(view.window.height, double(box.height) / r);
      EXPECT_DOUBLE_EQ(view.window.width, double(box.width) / r);
      EXPECT_LE(view.window.top + view.window.height, view.size.height);
      EXPECT_LE(view.window.left + view.window.width, view.size.width);
    });
  }
}

TEST(JpegRegion, CmykIsConvertedAsTheWholeIs) {
  for (const char* name : {"cmyk.jpg", "ycck.jpg"}) {
    const std::vector<uint8_t> bytes = test_bytes(name);
    const Image full = decode(bytes);
    const JpegRegion region = decode_region(bytes, {3, 5, 20, 11}, {20, 11});
    ASSERT_EQ(region.pixels.order(), Order::kRgb);
    EXPECT_TRUE(same_pixels(region.pixels, full, 3, 5));
  }
}

TEST(JpegRegion, TheReductionLeavesAtLeastWhatIsWanted) {
  EXPECT_EQ(choose_reduction({0, 0, 448, 448}, {224, 224}), 2);
  EXPECT_EQ(choose_reduction({0, 0, 447, 448}, {224, 224}), 1);
  EXPECT_EQ(choose_reduction({0, 0, 448, 447}, {224, 224}), 1);
  EXPECT_EQ(choose_reduction({0, 0, 4000, 4000}, {224, 224}), 8);
  EXPECT_EQ(choose_reduction({0, 0, 4000, 4000}, {224, 224}, {.largest_reduction = 4}), 4);
  EXPECT_EQ(choose_reduction({0, 0, 448, 448}, {224, 224}, {.gap = 2}), 1);
  EXPECT_EQ(choose_reduction({0, 0, 448, 4000}, {224, 224}, {.gap = 2}), 1);
  EXPECT_EQ(choose_reduction({0, 0, 4000, 448}, {224, 224}, {.gap = 2}), 1);
  EXPECT_EQ(choose_reduction({0, 0, 896, 900}, {224, 224}, {.gap = 2}), 2);
  EXPECT_EQ(choose_reduction({0, 0, 10, 10}, {224, 224}), 1);
}

TEST(JpegRegion, CallsInTheWrongOrderAndBoxesOutsideAreRefused) {
  const std::vector<uint8_t> bytes = write_jpeg({20, 30}, {});
  JpegRegionDecoder decoder;
  EXPECT_THROW((void)decoder.decode({0, 0, 1, 1}, {1, 1}), UsageError);
  for (const Box& box : {Box{-1, 0, 5, 5},
                         Box{0, 0, 21, 5},
                         Box{0, 26, 5, 5},
                         Box{0, 0, 0, 5},
                         Box{2147483647, 0, 2147483647, 5}}) {
    decoder.open(bytes);
    EXPECT_THROW((void)decoder.decode(box, {1, 1}), UsageError) << to_string(box);
  }
  decoder.open(bytes);
  EXPECT_THROW((void)decoder.decode({0, 0, 5, 5}, {0, 5}), UsageError);
  decoder.open(bytes);
  (void)decoder.decode({0, 0, 5, 5}, {5, 5});
  EXPECT_THROW((void)decoder.decode({0, 0, 5, 5}, {5, 5}), UsageError);  // one decode for each open
  EXPECT_THROW(JpegRegionDecoder({.largest_reduction = 3}), UsageError);
  EXPECT_THROW(JpegRegionDecoder({.gap = 0.5}), UsageError);
}

TEST(JpegRegion, ADecoderGoesOnAfterAnError) {
  const std::vector<uint8_t> bytes = test_bytes("flower_1.jpg");
  const Image full = decode(bytes);
  std::vector<uint8_t> half(bytes.begin(), bytes.begin() + static_cast<int64_t>(bytes.size() / 2));
  JpegRegionDecoder decoder;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(decoder.open(std::vector<uint8_t>{1, 2, 3}), DataError);
    EXPECT_THROW((void)decoder.decode({0, 0, 5, 5}, {5, 5}), UsageError);
    decoder.open(half, "half.jpg");
    try {
      (void)decoder.decode({300, 100, 200, 200}, {200, 200});
      FAIL() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_EQ(error.place().path, "half.jpg");
      EXPECT_THAT(error.what(), HasSubstr("truncated; "));
    }
    decoder.open(bytes);
    const RegionView view = decoder.decode({300, 100, 200, 201}, {200, 201});
    EXPECT_TRUE(same_pixels(view, full, 300, 100));
  }
}

/// Without its table of quantisation number `index`.
std::vector<uint8_t> without_table(std::vector<uint8_t> bytes, int index) {
  for (size_t at = 2; bytes[at + 1] != 0xda;
       at += 2 + bytes[at + 2] * size_t{256} + bytes[at + 3]) {
    if (bytes[at + 1] == 0xdb && bytes[at + 4] == index) {
      bytes.erase(bytes.begin() + static_cast<int64_t>(at),
                  bytes.begin() + static_cast<int64_t>(at) + 69);
      return bytes;
    }
  }
  return bytes;
}

TEST(JpegRegion, NothingOfOnePictureReachesTheNext) {
  const std::vector<uint8_t> bytes = write_jpeg({20, 30}, {});
  const std::vector<uint8_t> lacking = without_table(bytes, 0);
  ASSERT_LT(lacking.size(), bytes.size());
  JpegRegionDecoder decoder;
  for (int i = 0; i < 2; ++i) {
    decoder.open(lacking);
    EXPECT_THROW((void)decoder.decode({0, 0, 5, 5}, {5, 5}), DataError);
    decoder.open(bytes);
    (void)decoder.decode({0, 0, 5, 5}, {5, 5});
  }
}

TEST(JpegRegion, WhatLiesBelowTheBoxNeedNotBeThere) {
  const std::vector<uint8_t> bytes = test_bytes("flower_1.jpg");
  const Image full = decode(bytes);
  const std::vector<uint8_t> half(bytes.begin(),
                                  bytes.begin() + static_cast<int64_t>(bytes.size() / 2));
  const JpegRegion region = decode_region(half, {50, 100, 80, 90}, {80, 90});
  EXPECT_TRUE(same_pixels(region.pixels, full, 50, 100));
}

TEST(JpegRegion, ATruncatedFileNeverGivesOtherPixels) {
  for (const Writing& how : {Writing{}, Writing{.restart = 7}}) {
    const std::vector<uint8_t> bytes = write_jpeg({40, 52}, how);
    const Image full = decode(bytes);
    const Box box{5, 9, 21, 40};
    JpegRegionDecoder decoder;
    int came = 0;
    for (size_t cut = 700; cut < bytes.size(); ++cut) {
      const std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<int64_t>(cut));
      try {
        decoder.open(part);
        const RegionView view = decoder.decode(box, {21, 40});
        ASSERT_TRUE(same_pixels(view, full, 5, 9)) << cut;
        ++came;
      } catch (const DataError&) {
        ASSERT_EQ(came, 0) << cut;  // from some length on all is there
      }
    }
    EXPECT_GT(came, 0);
  }
}

TEST(JpegRegion, DamageIsLibjpegsErrorOrLibjpegsPixels) {
  std::vector<uint8_t> bytes = write_jpeg({95, 133}, {.restart = 5});
  const Box box{20, 30, 60, 70};
  std::mt19937 random(11);
  int errors = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<uint8_t> bad = bytes;
    bad[700 + random() % (bad.size() - 700)] ^= static_cast<uint8_t>(1 << random() % 8);
    const auto outcome = [&](Entropy entropy, Damaged damaged) {
      try {
        const JpegRegion region =
            decode_region(bad, box, {60, 70}, {.damaged = damaged, .entropy = entropy});
        return std::string(reinterpret_cast<const char*>(region.pixels.data()),
                           region.pixels.total_bytes());
      } catch (const DataError& error) {
        return std::string("error ") + error.what();
      }
    };
    const std::string own = outcome(Entropy::kOwn, Damaged::kRaise);
    const std::string theirs = outcome(Entropy::kLibjpeg, Damaged::kRaise);
    // Restarts let Argosy jump over damage above the box, which libjpeg reads.
    if (own.rfind("error", 0) == 0 || theirs.rfind("error", 0) != 0) {
      EXPECT_EQ(own, theirs) << i;
    }
    errors += static_cast<int>(own.rfind("error", 0) == 0);
    EXPECT_NE(outcome(Entropy::kOwn, Damaged::kAccept).rfind("error", 0), 0U) << i;
  }
  EXPECT_GT(errors, 50);
}

TEST(JpegRegion, ARestartMarkerOfTheWrongNumberIsLeftToLibjpeg) {
  std::vector<uint8_t> bytes = write_jpeg({95, 133}, {.restart = 5});
  const std::array<uint8_t, 2> marker{0xff, 0xd2};
  const auto at = std::search(bytes.begin() + 600, bytes.end(), marker.begin(), marker.end());
  ASSERT_NE(at, bytes.end());
  at[1] = 0xd4;
  const Box box{0, 0, 95, 133};
  std::array<JpegRegion, 2> accepted;
  for (const Entropy entropy : {Entropy::kOwn, Entropy::kLibjpeg}) {
    EXPECT_THROW((void)decode_region(bytes, box, {95, 133}, {.entropy = entropy}), DataError);
    accepted[static_cast<size_t>(entropy)] =
        decode_region(bytes, box, {95, 133}, {.damaged = Damaged::kAccept, .entropy = entropy});
  }
  EXPECT_TRUE(same_pixels(accepted[0].pixels, accepted[1].pixels, 0, 0));
}

}  // namespace
}  // namespace argosy::image
