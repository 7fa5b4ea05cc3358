#include "argosy/engine/named_draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"

// Compiled with -ffp-contract=off (CMakeLists.txt): every operation below rounds once, as written.
namespace argosy::engine {
namespace {

using Words = std::array<uint32_t, 4>;
/// As many elements share a counter.
constexpr int64_t kGroup = 4;

Words philox(Words counter, uint32_t key0, uint32_t key1) {
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
double logarithm(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double part =
      std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);  // [1, 2)
  if (part > std::numbers::sqrt2) {
    part *= 0.5;
    ++exponent;
  }
  // ln(m) = 2 artanh((m - 1) / (m + 1)), whose argument is at most 0.172.
  const double s = (part - 1) / (part + 1);
  const double s2 = s * s;
  double series = 0;
  for (int k = 19; k >= 1; k -= 2) {
    series = series * s2 + 1.0 / k;
  }
  return 2 * s * series + static_cast<double>(exponent) * std::numbers::ln2;
}

/// Cosine and sine of `turn` whole circles, 0 <= turn < 1, to 1e-14.
std::array<double, 2> cosine_and_sine(double turn) {
  const auto quarter = static_cast<int>(turn * 4 + 0.5);  // to the nearest
  const double angle = (turn - quarter * 0.25) * (2 * std::numbers::pi);
  const double square = angle * angle;
  double cosine = 1, sine = 1;  // Taylor's series, from their ends
  for (int k = 16; k >= 2; k -= 2) {
    cosine = 1 - square * cosine / (k * (k - 1));
    sine = 1 - square * sine / (k * (k + 1));
  }
  sine *= angle;
  switch (quarter % 4) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

/// Four normal numbers of deviation one.
std::array<double, kGroup> normals(const Words& words) {
  std::array<double, kGroup> all{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double uniform = (static_cast<double>(words[pair]) + 0.5) * 0x1p-32;  // never 0 or 1
    const double radius = std::sqrt(-2 * logarithm(uniform));
    const auto [cosine, sine] = cosine_and_sine(static_cast<double>(words[pair + 1]) * 0x1p-32);
    all[pair] = radius * cosine;
    all[pair + 1] = radius * sine;
  }
  return all;
}

/// The words of four elements.
Words words_of(uint64_t seed, std::string_view name, int64_t group) {
  Fingerprint fingerprint;
  fingerprint.add(name);
  const uint64_t hash = fingerprint.value();
  const auto number = static_cast<uint64_t>(group);
  return philox({static_cast<uint32_t>(number),
                 static_cast<uint32_t>(number >> 32),
                 static_cast<uint32_t>(hash),
                 static_cast<uint32_t>(hash >> 32)},
                static_cast<uint32_t>(seed),
                static_cast<uint32_t>(seed >> 32));
}

}  // namespace

void draw_normal(const NormalDraw& draw, int64_t first, std::span<float> values) {
  ARGOSY_CHECK(first >= 0 && draw.standard_deviation >= 0,
               "engine.draw_normal",
               "expected a first element and a standard deviation that are not negative, got {} "
               "and {}",
               first,
               draw.standard_deviation);
  const auto end = first + static_cast<int64_t>(values.size());
  for (int64_t group = first / kGroup; group * kGroup < end; ++group) {
    const auto drawn = normals(words_of(draw.seed, draw.name, group));
    for (int64_t i = std::max(first, group * kGroup); i < std::min(end, (group + 1) * kGroup);
         ++i) {
      values[static_cast<std::size_t>(i - first)] = static_cast<float>(
          drawn[static_cast<std::size_t>(i - group * kGroup)] * draw.standard_deviation);
    }
  }
}

double draw_uniform(uint64_t seed, std::string_view name, int64_t index) {
  ARGOSY_CHECK(index >= 0, "engine.draw_uniform", "index must not be negative, got {}", index);
  const Words words = words_of(seed, name, index / kGroup);
  return static_cast<double>(words[static_cast<std::size_t>(index % kGroup)]) * 0x1p-32;
}

}  // namespace argosy::engine
