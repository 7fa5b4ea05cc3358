#include "argosy/image/resize.h"

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/image/resize_byte_dot.h"
#include "argosy/image/resize_kernels.h"

#include "tests/support/error_text.h"

namespace argosy::image {
namespace {

using test::error_text;
using ::testing::HasSubstr;

Image noise(Size size, Order order, Type type = Type::kU8) {
  Image image(size, order, type);
  std::mt19937 random(7);
  for (int y = 0; y < size.height; ++y) {
    for (int i = 0; i < size.width * image.channels(); ++i) {
      if (type == Type::kU8) {
        image.row<uint8_t>(y)[i] = static_cast<uint8_t>(random());
      } else {
        image.row<float>(y)[i] = static_cast<float>(random() % 1000) / 999.0F;
      }
    }
  }
  return image;
}

bool same(const Image& a, const Image& b) {
  return a.size() == b.size() && a.order() == b.order() && a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), a.total_bytes()) == 0;
}

TEST(Resize, OneColorStaysThatColorWhateverTheSize) {
  for (const uint8_t value : {0, 1, 127, 254, 255}) {
    Image image({33, 47}, Order::kRgba);
    std::memset(image.data(), value, image.total_bytes());
    for (const Size to : {Size{5, 200}, Size{90, 7}, Size{33, 47}, Size{1, 1}}) {
      for (int i = 0; i < 6; ++i) {
        const Image result = resize(image, to, {static_cast<Interpolation>(i)});
        EXPECT_EQ(result.row<uint8_t>(0)[3], value);
        EXPECT_TRUE(std::memcmp(result.data(), result.data() + 1, result.total_bytes() - 1) == 0 ||
                    (value != 255 && value != 0))  // colors divided by alpha are cut
            << to.height << ' ' << to.width << ' ' << i << ' ' << int{value};
      }
    }
  }
}

TEST(Resize, TheSameSizeIsTheSameImage) {
  const Image image = noise({31, 29}, Order::kRgb);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(same(resize(image, image.size(), {static_cast<Interpolation>(i)}), image)) << i;
  }
  const Image floats = noise({31, 29}, Order::kBgr, Type::kF32);
  EXPECT_TRUE(same(resize(floats, floats.size()), floats));
}

TEST(Resize, HalfABoxIsTheMeanOfTwo) {
  Image image({1, 4}, Order::kGray);
  const std::vector<uint8_t> values{10, 20, 30, 41};
  std::memcpy(image.data(), values.data(), 4);
  const Image half = resize(image, {1, 2}, {Interpolation::kBox});
  EXPECT_EQ(half.row<uint8_t>(0)[0], 15);
  EXPECT_EQ(half.row<uint8_t>(0)[1], 36);
  const Image middle = resize(image, {0, 1, 1, 2}, {1, 1}, {Interpolation::kBox});
  EXPECT_EQ(middle.row<uint8_t>(0)[0], 25);
}

TEST(Resize, KeepsOrderAndType) {
  const Image bgr = resize(noise({9, 9}, Order::kBgr, Type::kF32), {4, 5});
  EXPECT_EQ(bgr.order(), Order::kBgr);
  EXPECT_EQ(bgr.type(), Type::kF32);
  EXPECT_EQ(bgr.size(), (Size{4, 5}));
}

TEST(Resize, RefusesWhatMakesNoSense) {
  const Image image = noise({8, 8}, Order::kRgb);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error_text<UsageError>([&] { (void)resize(image, {0, 5}); }), HasSubstr("0 x 5"));
  EXPECT_THAT(error_text<UsageError>([&] { (void)resize(image, {5, -1}); }), HasSubstr("5 x -1"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {1 << 20, 1 << 20});
              }),
              HasSubstr("pixels"));
  EXPECT_THAT(error_text<UsageError>([&] { (void)resize(Image(), {5, 5}); }), HasSubstr("empty"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {0, 0, 8, 8.5}, {5, 5});
              }),
              HasSubstr("inside of 8 x 8"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {-1, 0, 8, 8}, {5, 5});
              }),
              HasSubstr("inside"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {2, 2, 0, 2}, {5, 5});
              }),
              HasSubstr("inside"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {nan, 0, 2, 2}, {5, 5});
              }),
              HasSubstr("inside"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {0, 0, 2, nan}, {5, 5});
              }),
              HasSubstr("inside"));
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {5, 5}, {Interpolation::kLanczos, Antialias::kOff});
              }),
              HasSubstr("lanczos is only known with antialias"));
}

TEST(Resize, RefusesMoreWeightsThanAPictureNeeds) {
  // 2^26 pixels side by side into one: a file of some bytes may say so.
  const Image image({1, 1 << 26}, Order::kGray);
  EXPECT_THAT(error_text<UsageError>([&] {
                (void)resize(image, {1, 1});
              }),
              HasSubstr("Resize in two steps"));
}

TEST(Resampler, MakesTheRowsOfResizeFlippedOnDemand) {
  for (const Order order : {Order::kGray, Order::kRgb, Order::kRgba}) {
    const Image image = noise({70, 83}, order);
    const BoxF box{3.5, 7.25, 60, 70.5};
    const Size to{40, 37};
    const int channels = image.channels();
    Resampler resampler(image.size(), box, to, channels, {.flip = Flip::kHorizontal});
    // RGBA as if it were any four channels.
    Image plain = image;
    std::vector<uint8_t> row(static_cast<size_t>(to.width * channels));
    Resampler unflipped(image.size(), box, to, channels);
    std::vector<uint8_t> expected(row.size());
    for (int run = 0; run < 2; ++run) {  // the second picture with the same weights
      resampler.start(image.row<uint8_t>(0), image.row_bytes());
      unflipped.start(plain.row<uint8_t>(0), plain.row_bytes());
      for (int y = 0; y < to.height; ++y) {
        resampler.next(row.data());
        unflipped.next(expected.data());
        for (int x = 0; x < to.width; ++x) {
          for (int c = 0; c < channels; ++c) {
            ASSERT_EQ(row[static_cast<size_t>((to.width - 1 - x) * channels + c)],
                      expected[static_cast<size_t>(x * channels + c)])
                << y << ' ' << x;
          }
        }
      }
    }
    if (order != Order::kRgba) {
      const Image whole = resize(image, box, to);
      EXPECT_EQ(std::memcmp(whole.row<uint8_t>(to.height - 1), expected.data(), expected.size()),
                0);
    }
  }
}

TEST(Resampler, ReadsOnlyTheRowsAndColumnsThatItNames) {
  const Size size{200, 180};
  const Image image = noise(size, Order::kRgb);
  Resampler resampler(size, {50, 60, 80, 70}, {32, 32}, 3);
  const Resampler::Range rows = resampler.rows(), columns = resampler.columns();
  EXPECT_GE(rows.begin, 47);
  EXPECT_LE(rows.end, 133);
  // A source with nothing in it but those, which comes row by row.
  Image filled(size, Order::kRgb);
  std::memset(filled.data(), 0, filled.total_bytes());
  int there = rows.begin;
  const Image expected = resize(image, {50, 60, 80, 70}, {32, 32});
  std::vector<uint8_t> row(32 * 3);
  resampler.start(filled.row<uint8_t>(0), filled.row_bytes());
  for (int y = 0; y < 32; ++y) {
    for (; there < resampler.rows_needed(y); ++there) {
      std::memcpy(filled.row<uint8_t>(there) + columns.begin * 3,
                  image.row<uint8_t>(there) + columns.begin * 3,
                  static_cast<size_t>(columns.end - columns.begin) * 3);
    }
    resampler.next(row.data());
    EXPECT_EQ(std::memcmp(row.data(), expected.row<uint8_t>(y), row.size()), 0) << y;
  }
  EXPECT_EQ(there, rows.end);
}

TEST(Resampler, IsPlannedAgainForOtherPictures) {
  Resampler resampler;
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    const Size size{1 + static_cast<int>(random() % 90), 1 + static_cast<int>(random() % 90)};
    const Size to{1 + static_cast<int>(random() % 90), 1 + static_cast<int>(random() % 90)};
    const Image image = noise(size, Order::kRgb);
    resampler.plan(
        size, {0, 0, double(size.height), double(size.width)}, to, 3, {Interpolation::kBicubic});
    resampler.start(image.row<uint8_t>(0), image.row_bytes());
    const Image expected = resize(image, to, {Interpolation::kBicubic});
    std::vector<uint8_t> row(static_cast<size_t>(to.width) * 3);
    for (int y = 0; y < to.height; ++y) {
      resampler.next(row.data());
      ASSERT_EQ(std::memcmp(row.data(), expected.row<uint8_t>(y), row.size()), 0) << i << ' ' << y;
    }
  }
}

TEST(Resampler, APartHasTheBitsOfTheWhole) {
  std::mt19937 random(17);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 200; ++i) {
    const Size size{1 + below(120), 1 + below(120)};
    const Size to{1 + below(90), i % 3 == 0 ? size.width : 1 + below(90)};
    const Image image = noise(size, Order::kRgb);
    const ResizeOptions how{static_cast<Interpolation>(below(6))};
    Box part{below(to.height), below(to.width), 0, 0};
    part.height = 1 + below(to.height - part.top);
    part.width = 1 + below(to.width - part.left);
    const bool flip = below(2) == 1;
    Resampler resampler(size,
                        {0, 0, double(size.height), double(size.width)},
                        to,
                        3,
                        {.interpolation = how.interpolation,
                         .flip = flip ? Flip::kHorizontal : Flip::kOff,
                         .part = part});
    const Image whole = resize(image, to, how);
    std::vector<uint8_t> row(static_cast<size_t>(part.width) * 3);
    resampler.start(image.row<uint8_t>(0), image.row_bytes());
    for (int y = 0; y < part.height; ++y) {
      resampler.next(row.data());
      for (int x = 0; x < part.width; ++x) {
        const int from = part.left + (flip ? part.width - 1 - x : x);
        ASSERT_EQ(std::memcmp(row.data() + x * 3, whole.row<uint8_t>(part.top + y) + from * 3, 3),
                  0)
            << i << ": " << x << ' ' << y;
      }
    }
  }
}

TEST(Resampler, SaysWhatIsWrongWithACall) {
  Resampler resampler({8, 8}, {0, 0, 8, 8}, {1, 4}, 3);
  std::vector<uint8_t> row(12), pixels(192);
  EXPECT_THAT(error_text<UsageError>([&] { resampler.next(row.data()); }),
              HasSubstr("without start()"));
  resampler.start(pixels.data(), 24);
  resampler.next(row.data());
  EXPECT_THAT(error_text<UsageError>([&] { resampler.next(row.data()); }),
              HasSubstr("all 1 rows were made"));
  EXPECT_THAT(error_text<UsageError>([&] {
                resampler.plan({8, 8}, {0, 0, 8, 8}, {4, 4}, 5);
              }),
              HasSubstr("got 5"));
  for (const Box& part : {Box{0, 0, 0, 4}, Box{0, 0, 4, 5}, Box{-1, 0, 2, 2}, Box{3, 0, 2, 2}}) {
    EXPECT_THAT(error_text<UsageError>([&] {
                  resampler.plan({8, 8}, {0, 0, 8, 8}, {4, 4}, 3, {.part = part});
                }),
                HasSubstr("expected a part inside of the 4 x 4 target"));
  }
}

/// Each kernel of this machine gives the bits of the plain loops. A row stands at the very end of
/// its memory, so that AddressSanitizer sees a byte too many.
TEST(ResizeKernels, AllVariantsGiveTheSameBits) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const int channels = 1 + static_cast<int>(random() % 4);
    const int from = 1 + static_cast<int>(random() % 150),
              to = 1 + static_cast<int>(random() % 150);
    const auto interpolation = static_cast<Interpolation>(random() % 6);
    detail::Taps<double> exact;
    detail::Taps<int32_t> taps;
    detail::make_taps(
        {.from = from, .end = static_cast<float>(from), .to = to}, {interpolation}, exact);
    detail::to_fixed(exact, taps);
    if (random() % 2 == 0) {
      detail::reverse(taps);
    }
    const auto place = [&](int x, int c) {
      return static_cast<size_t>(x) * static_cast<size_t>(channels) + static_cast<size_t>(c);
    };
    const int row_count = 1 + static_cast<int>(random() % detail::kRowsAtOnce);
    std::vector<std::vector<uint8_t>> sources, expected, results;
    detail::SourceRows rows{};
    detail::ResultRows at_expected{}, at_results{};
    for (int r = 0; r < row_count; ++r) {
      sources.emplace_back(static_cast<size_t>(from * channels));
      for (uint8_t& value : sources.back()) {
        value = static_cast<uint8_t>(random() % 4 == 0 ? 255 * (random() % 2) : random());
      }
      const size_t room = (static_cast<size_t>(to) * static_cast<size_t>(channels) + 15) / 16 * 16;
      expected.emplace_back(room);
      results.emplace_back(room);
    }
    for (size_t r = 0; r < sources.size(); ++r) {
      rows[r] = sources[r].data();
      at_expected[r] = expected[r].data();
      at_results[r] = results[r].data();
      // The definition.
      for (int x = 0; x < to; ++x) {
        for (int c = 0; c < channels; ++c) {
          int64_t sum = 1 << (detail::kFractionBits - 1);
          for (int k = 0; k < taps.count[static_cast<size_t>(x)]; ++k) {
            sum += int64_t{taps.of(x)[k]} *
                   sources[r][place(taps.first[static_cast<size_t>(x)] + k, c)];
          }
          expected[r][place(x, c)] =
              static_cast<uint8_t>(std::clamp<int64_t>(sum >> detail::kFractionBits, 0, 255));
        }
      }
    }
    const auto expect_results = [&](const char* by) {
      for (size_t r = 0; r < results.size(); ++r) {
        std::fill(results[r].begin() + ptrdiff_t{to} * channels, results[r].end(), uint8_t{0});
        EXPECT_EQ(results[r], expected[r]) << by << ' ' << i;
      }
    };
    detail::ColumnScratch scratch;
    detail::weigh_columns(rows, row_count, from, taps, channels, at_results, scratch);
    expect_results("plain");
    detail::ByteDotColumns byte_dot;
    if (byte_dot.plan(taps, channels)) {
      for (auto& row : results) {
        std::fill(row.begin(), row.end(), uint8_t{1});
      }
      byte_dot.weigh(rows, row_count, at_results);
      expect_results("byte_dot");
    }
    // Rows: the columns' weights of a random new pixel, over rows of random length.
    const int one = static_cast<int>(random()) & 0xFFFF;
    const int pixel = one % to;
    const int count = taps.count[static_cast<size_t>(pixel)];
    const size_t n = 1 + random() % 200;
    std::vector<std::vector<uint8_t>> high(static_cast<size_t>(count), std::vector<uint8_t>(n));
    std::vector<const uint8_t*> inputs;
    for (auto& row : high) {
      for (uint8_t& value : row) {
        value = static_cast<uint8_t>(random() % 4 == 0 ? 255 * (random() % 2) : random());
      }
      inputs.push_back(row.data());
    }
    std::vector<uint8_t> sums(n), plain(n), dot(n);
    for (size_t x = 0; x < n; ++x) {
      int64_t sum = 1 << (detail::kFractionBits - 1);
      for (int k = 0; k < count; ++k) {
        sum += int64_t{taps.of(pixel)[k]} * high[static_cast<size_t>(k)][x];
      }
      sums[x] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> detail::kFractionBits, 0, 255));
    }
    const auto length = static_cast<int64_t>(n);
    detail::weigh_rows(inputs.data(), taps.of(pixel), count, length, plain.data());
    EXPECT_EQ(plain, sums) << i;
    if (detail::has_byte_dot()) {
      detail::weigh_rows_byte_dot(inputs.data(), taps.of(pixel), count, length, dot.data());
      EXPECT_EQ(dot, sums) << i;
    }
  }
}

}  // namespace
}  // namespace argosy::image
