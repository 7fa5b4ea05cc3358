#include "argosy/engine/named_draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/simd.h"

// Compiled with -ffp-contract=off (CMakeLists.txt): every operation below rounds once, as written.
namespace argosy::engine {
namespace {

using Words = std::array<uint32_t, 4>;
/// As many elements share a counter.
constexpr int64_t kGroup = 4;
/// Groups that are drawn beside each other.
constexpr int64_t kGroups = 64;

/// The counter's upper half and the key: everything but the number of the group.
struct Stream {
  uint64_t name = 0;
  uint64_t seed = 0;
};

Stream stream_of(uint64_t seed, std::string_view name) {
  Fingerprint fingerprint;
  fingerprint.add(name);
  return {fingerprint.value(), seed};
}

ARGOSY_KERNEL_INLINE Words philox(const Stream& stream, uint64_t group) {
  Words counter{static_cast<uint32_t>(group),
                static_cast<uint32_t>(group >> 32),
                static_cast<uint32_t>(stream.name),
                static_cast<uint32_t>(stream.name >> 32)};
  auto key0 = static_cast<uint32_t>(stream.seed);
  auto key1 = static_cast<uint32_t>(stream.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The logarithm of x > 0, to 1e-14 of its value.
ARGOSY_KERNEL_INLINE double logarithm(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  // The exponent as a double without a conversion from 64 bits, which AVX2 lacks.
  double exponent = std::bit_cast<double>((bits >> 52) | 0x4330000000000000ULL) - 0x1p52 - 1023;
  double part =
      std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);  // [1, 2)
  const bool large = part > std::numbers::sqrt2;
  part = large ? part * 0.5 : part;
  exponent = large ? exponent + 1 : exponent;
  // ln(m) = 2 artanh((m - 1) / (m + 1)), whose argument is at most 0.172.
  const double s = (part - 1) / (part + 1);
  const double s2 = s * s;
  double series = 1.0 / 19;
  series = series * s2 + 1.0 / 17;
  series = series * s2 + 1.0 / 15;
  series = series * s2 + 1.0 / 13;
  series = series * s2 + 1.0 / 11;
  series = series * s2 + 1.0 / 9;
  series = series * s2 + 1.0 / 7;
  series = series * s2 + 1.0 / 5;
  series = series * s2 + 1.0 / 3;
  series = series * s2 + 1.0;
  return 2 * s * series + exponent * std::numbers::ln2;
}

struct Direction {
  double cosine;
  double sine;
};

/// Cosine and sine of `word` / 2^32 whole circles, to 1e-14: Taylor's series around the nearest
/// quarter.
ARGOSY_KERNEL_INLINE Direction direction_of(uint32_t word) {
  const uint32_t quarter = (word + 0x20000000U) >> 30;  // to the nearest; the fourth is the first
  const auto rest = static_cast<int32_t>(word - (quarter << 30));
  const double angle = static_cast<double>(rest) * (0x1p-32 * 2 * std::numbers::pi);
  const double square = angle * angle;
  double sine = -1.0 / 1307674368000;  // 1/15!, …
  sine = sine * square + 1.0 / 6227020800;
  sine = sine * square - 1.0 / 39916800;
  sine = sine * square + 1.0 / 362880;
  sine = sine * square - 1.0 / 5040;
  sine = sine * square + 1.0 / 120;
  sine = sine * square - 1.0 / 6;
  sine = (sine * square + 1.0) * angle;
  double cosine = 1.0 / 20922789888000;  // 1/16!, …
  cosine = cosine * square - 1.0 / 87178291200;
  cosine = cosine * square + 1.0 / 479001600;
  cosine = cosine * square - 1.0 / 3628800;
  cosine = cosine * square + 1.0 / 40320;
  cosine = cosine * square - 1.0 / 720;
  cosine = cosine * square + 1.0 / 24;
  cosine = cosine * square - 1.0 / 2;
  cosine = cosine * square + 1.0;
  const bool odd = (quarter & 1) != 0;
  const double across = odd ? sine : cosine;
  const double up = odd ? cosine : sine;
  return {((quarter + 1) & 2) != 0 ? -across : across, (quarter & 2) != 0 ? -up : up};
}

/// The normal numbers of this deviation of kGroups groups.
ARGOSY_KERNEL void draw_groups(const Stream& stream,
                               int64_t first,
                               double deviation,
                               float* values) {
  std::array<std::array<uint32_t, kGroups>, 4> words{};
  for (std::size_t i = 0; i < kGroups; ++i) {
    const Words drawn = philox(stream, static_cast<uint64_t>(first) + i);
    words[0][i] = drawn[0];
    words[1][i] = drawn[1];
    words[2][i] = drawn[2];
    words[3][i] = drawn[3];
  }
  std::array<std::array<float, kGroups>, 4> numbers{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    for (std::size_t i = 0; i < kGroups; ++i) {
      // Never 0 or 1. Through i32, for which AVX2 has a conversion.
      const auto word = static_cast<int32_t>(words[pair][i] ^ 0x80000000U);
      const double uniform = (static_cast<double>(word) + (0x1p31 + 0.5)) * 0x1p-32;
      const double radius = std::sqrt(-2 * logarithm(uniform));
      const Direction direction = direction_of(words[pair + 1][i]);
      numbers[pair][i] = static_cast<float>(radius * direction.cosine * deviation);
      numbers[pair + 1][i] = static_cast<float>(radius * direction.sine * deviation);
    }
  }
  for (std::size_t i = 0; i < kGroups; ++i) {
    for (std::size_t k = 0; k < 4; ++k) {
      values[4 * i + k] = numbers[k][i];
    }
  }
}

}  // namespace

void draw_normal(const NormalDraw& draw, int64_t first, std::span<float> values) {
  ARGOSY_CHECK(first >= 0 && draw.standard_deviation >= 0,
               "engine.draw_normal",
               "expected a first element and a standard deviation that are not negative, got {} "
               "and {}",
               first,
               draw.standard_deviation);
  const Stream stream = stream_of(draw.seed, draw.name);
  const auto end = first + static_cast<int64_t>(values.size());
  std::array<float, kGroup * kGroups> drawn{};
  for (int64_t group = first / kGroup; group * kGroup < end; group += kGroups) {
    draw_groups(stream, group, draw.standard_deviation, drawn.data());
    const int64_t from = std::max(first, group * kGroup);
    const int64_t to = std::min(end, (group + kGroups) * kGroup);
    std::copy_n(
        drawn.begin() + (from - group * kGroup), to - from, values.begin() + (from - first));
  }
}

double draw_uniform(uint64_t seed, std::string_view name, int64_t index) {
  ARGOSY_CHECK(index >= 0, "engine.draw_uniform", "index must not be negative, got {}", index);
  const Words words = philox(stream_of(seed, name), static_cast<uint64_t>(index / kGroup));
  return static_cast<double>(words[static_cast<std::size_t>(index % kGroup)]) * 0x1p-32;
}

}  // namespace argosy::engine
