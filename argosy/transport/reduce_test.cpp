#include "argosy/transport/reduce.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/reduce_dispatch.h"

namespace argosy::transport {
namespace {

using ::testing::ElementsAre;

constexpr ReduceOp kAllOps[] = {ReduceOp::kSum,
                                ReduceOp::kAvg,
                                ReduceOp::kMin,
                                ReduceOp::kMax,
                                ReduceOp::kProduct,
                                ReduceOp::kBand,
                                ReduceOp::kBor,
                                ReduceOp::kBxor};
constexpr DType kAllTypes[] = {DType::kF32,
                               DType::kF64,
                               DType::kF16,
                               DType::kBf16,
                               DType::kI8,
                               DType::kU8,
                               DType::kI32,
                               DType::kI64,
                               DType::kBool};

template <typename T>
std::vector<T> reduced(const std::vector<std::vector<T>>& sources, DType dtype, ReduceOp op) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) {
    pointers.push_back(source.data());
  }
  std::vector<T> result(sources[0].size());
  const LeafDeal deal = LeafDeal::one_each(static_cast<int>(sources.size()));
  reduce({.data = pointers.data(),
          .merges = deal.sums()[0].merges.data(),
          .count = static_cast<int>(pointers.size()),
          .divisor = deal.leaves()},
         result.data(),
         static_cast<int64_t>(result.size()),
         dtype,
         op);
  return result;
}

TEST(Reduce, AddsAlongTheTree) {
  const auto sum = [](const std::vector<std::vector<float>>& sources) {
    return reduced<float>(sources, DType::kF32, ReduceOp::kSum);
  };
  // 1e8 + 1 is 1e8 in f32: the order of the three shows, and of four that it is no left fold.
  EXPECT_THAT(sum({{1e8F}, {1.0F}, {-1e8F}}), ElementsAre(0.0F));
  EXPECT_THAT(sum({{1e8F}, {-1e8F}, {1.0F}}), ElementsAre(1.0F));
  EXPECT_THAT(sum({{1e8F}, {-1e8F}, {1e8F}, {1.0F}}), ElementsAre(1e8F));
  EXPECT_THAT(sum({{1e8F}, {1.0F}, {-1e8F}, {1.0F}}), ElementsAre(0.0F));
}

TEST(Reduce, IntegersWrapInSumsButNotInAverages) {
  EXPECT_THAT(reduced<uint8_t>({{200}, {100}}, DType::kU8, ReduceOp::kSum), ElementsAre(44));
  EXPECT_THAT(reduced<uint8_t>({{200}, {100}}, DType::kU8, ReduceOp::kAvg), ElementsAre(150));
  EXPECT_THAT(reduced<int8_t>({{127}, {1}}, DType::kI8, ReduceOp::kSum), ElementsAre(-128));
  EXPECT_THAT(reduced<int32_t>({{INT32_MAX}, {INT32_MAX}}, DType::kI32, ReduceOp::kAvg),
              ElementsAre(INT32_MAX));
  EXPECT_THAT(reduced<int64_t>({{INT64_MAX}, {1}}, DType::kI64, ReduceOp::kSum),
              ElementsAre(INT64_MIN));
  EXPECT_THAT(reduced<int64_t>({{-5, 5}, {-2, 2}}, DType::kI64, ReduceOp::kAvg),
              ElementsAre(-3, 3));
  EXPECT_THAT(reduced<int32_t>({{-5}, {-2}}, DType::kI32, ReduceOp::kAvg), ElementsAre(-3));
}

TEST(Reduce, NanOfAnyRankWinsMinAndMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const auto result = reduced<float>({{nan, 1, 1}, {1, nan, 1}, {1, 1, nan}}, DType::kF32, op);
    EXPECT_THAT(result, ::testing::Each(::testing::IsNan()));
  }
}

TEST(Reduce, BoolIsAnyAndAll) {
  const std::vector<std::vector<uint8_t>> sources{{0, 1, 0, 2}, {0, 1, 1, 0}};
  EXPECT_THAT(reduced<uint8_t>(sources, DType::kBool, ReduceOp::kSum), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(reduced<uint8_t>(sources, DType::kBool, ReduceOp::kMax), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(reduced<uint8_t>(sources, DType::kBool, ReduceOp::kMin), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(reduced<uint8_t>(sources, DType::kBool, ReduceOp::kProduct), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(reduced<uint8_t>(sources, DType::kBool, ReduceOp::kBxor), ElementsAre(0, 0, 1, 1));
}

TEST(Reduce, RefusesWhatIsNotDefined) {
  float value = 0;
  const void* source = &value;
  const uint8_t merges = 0;
  const Terms one{.data = &source, .merges = &merges, .count = 1};
  EXPECT_THROW(reduce(one, &value, 1, DType::kF32, ReduceOp::kBxor), UsageError);
  EXPECT_THROW(reduce(one, &value, 1, DType::kBool, ReduceOp::kAvg), UsageError);
  EXPECT_THROW(reduce({}, &value, 1, DType::kF32, ReduceOp::kSum), UsageError);
}

TEST(Reduce, WritesOverASourceAndNothingElse) {
  std::vector<double> a(5000, 1), b(5000, 2);
  const void* sources[] = {a.data(), b.data()};
  const uint8_t merges[] = {0, 1};
  reduce(
      {.data = sources, .merges = merges, .count = 2}, b.data(), 4999, DType::kF64, ReduceOp::kSum);
  EXPECT_EQ(b[4998], 3);
  EXPECT_EQ(b[4999], 2);
  EXPECT_EQ(a[0], 1);
}

/// Random bytes: every NaN, infinity and denormal pattern included, at odd addresses.
TEST(Reduce, AllInstructionSetsGiveTheSameBits) {
#if defined(__x86_64__)
  std::mt19937 random(7);
  constexpr int64_t kCount = 5003;
  constexpr int kTerms = 7;  // some wait while others are added
  std::vector<std::vector<uint8_t>> memory(kTerms, std::vector<uint8_t>(kCount * 8 + 1));
  for (auto& bytes : memory) {
    for (auto& byte : bytes) {
      byte = static_cast<uint8_t>(random());
    }
  }
  std::vector<const void*> sources;
  for (const auto& bytes : memory) {
    sources.push_back(&bytes[1]);
  }
  const LeafDeal deal = LeafDeal::one_each(kTerms);
  const Terms terms{.data = sources.data(),
                    .merges = deal.sums()[0].merges.data(),
                    .count = kTerms,
                    .divisor = kTerms};
  for (const DType dtype : kAllTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_defined(op, dtype)) {
        continue;
      }
      const auto run = [&](Kernel kernel) {
        std::vector<uint8_t> result(static_cast<size_t>(kCount) * size_of(dtype));
        kernel(terms, result.data(), kCount);
        return result;
      };
      const auto expected = run(baseline::select(dtype, op));
      if (__builtin_cpu_supports("avx2") != 0) {
        EXPECT_TRUE(run(avx2::select(dtype, op)) == expected)
            << "avx2 " << to_string(dtype) << ' ' << to_string(op);
      }
      if (__builtin_cpu_supports("avx512bw") != 0) {
        EXPECT_TRUE(run(avx512::select(dtype, op)) == expected)
            << "avx512 " << to_string(dtype) << ' ' << to_string(op);
      }
    }
  }
#endif
}

/// The number that 16 bits mean, from the definition of the format.
double meaning(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  }
  const double fraction = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(fraction, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

struct Format {
  int exponent_bits;
  int mantissa_bits;
  float (*to_f32)(uint16_t);
  uint16_t (*from_f32)(float);
};

class Float16 : public ::testing::TestWithParam<Format> {};

TEST_P(Float16, EveryPatternMeansItsNumberAndComesBack) {
  const Format& format = GetParam();
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const double expected = meaning(pattern, format.exponent_bits, format.mantissa_bits);
    const float value = format.to_f32(pattern);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(format.to_f32(format.from_f32(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(format.from_f32(value), pattern) << bits;
    }
  }
}

/// Between every two neighbours: the middle goes to the even one, a hair beside it to the nearer.
TEST_P(Float16, RoundsToNearestEven) {
  const Format& format = GetParam();
  const uint32_t infinity = 0x7fffU >> format.mantissa_bits << format.mantissa_bits;
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const double middle = (meaning(low, format.exponent_bits, format.mantissa_bits) +
                           meaning(high, format.exponent_bits, format.mantissa_bits)) /
                          2;
    const auto exact = static_cast<float>(middle);
    if (static_cast<double>(exact) != middle) {
      continue;  // below the smallest f32
    }
    const uint16_t even = (bits & 1) == 0 ? low : high;
    ASSERT_EQ(format.from_f32(exact), even) << bits;
    ASSERT_EQ(format.from_f32(std::nextafter(exact, 0.0F)), low) << bits;
    ASSERT_EQ(format.from_f32(std::nextafter(exact, HUGE_VALF)), high) << bits;
    ASSERT_EQ(format.from_f32(-exact), even | 0x8000U) << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats,
                         Float16,
                         ::testing::Values(Format{5, 10, f16_to_f32, f32_to_f16},
                                           Format{8, 7, bf16_to_f32, f32_to_bf16}),
                         [](const auto& info) { return info.index == 0 ? "F16" : "Bf16"; });

TEST(Float16Edges, OverflowAndNan) {
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(f32_to_f16(1e30F), 0x7c00);
  EXPECT_EQ(f32_to_f16(-HUGE_VALF), 0xfc00);
  EXPECT_EQ(f32_to_f16(1e-30F), 0);
  EXPECT_EQ(f32_to_bf16(3.4028235e38F), 0x7f80);
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xff800001U)))));
}

TEST(Reduce, HalfSumsAreRoundedOnce) {
  // 2048 + 1 + 1 is 2050 in f32; rounded after each step it would stay at 2048.
  const uint16_t large = f32_to_f16(2048), one = f32_to_f16(1);
  EXPECT_THAT(reduced<uint16_t>({{large}, {one}, {one}}, DType::kF16, ReduceOp::kSum),
              ElementsAre(f32_to_f16(2050)));
  const uint16_t big = f32_to_f16(60000);
  EXPECT_THAT(reduced<uint16_t>({{big}, {big}}, DType::kF16, ReduceOp::kSum), ElementsAre(0x7c00));
  EXPECT_THAT(reduced<uint16_t>({{big}, {big}}, DType::kF16, ReduceOp::kAvg), ElementsAre(big));
}

}  // namespace
}  // namespace argosy::transport
