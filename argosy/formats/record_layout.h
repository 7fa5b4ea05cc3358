#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

/// The layout that records.h describes, in numbers.
namespace argosy::formats::layout {

inline constexpr std::string_view kMagic = "ARGOREC\n";
inline constexpr std::string_view kEndMagic = "ARGOEND\n";
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kHeaderBytes = 32;
inline constexpr uint64_t kRecordHeaderBytes = 16;
inline constexpr uint64_t kFooterBytes = 32;

constexpr uint64_t padding(uint64_t bytes) {
  return (8 - bytes % 8) % 8;
}

template <typename Number>
Number from_little(const std::byte* bytes) {
  std::array<std::byte, sizeof(Number)> raw{};
  std::copy_n(bytes, sizeof(Number), raw.begin());
  if constexpr (std::endian::native == std::endian::big) {
    std::reverse(raw.begin(), raw.end());
  }
  return std::bit_cast<Number>(raw);
}

template <typename Number>
std::array<std::byte, sizeof(Number)> to_little(Number number) {
  auto raw = std::bit_cast<std::array<std::byte, sizeof(Number)>>(number);
  if constexpr (std::endian::native == std::endian::big) {
    std::reverse(raw.begin(), raw.end());
  }
  return raw;
}

inline uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace argosy::formats::layout
