#include "argosy/datasets/greys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "argosy/base/simd.h"

namespace argosy::datasets {
namespace {

constexpr size_t kBlock = 64;

std::optional<uint8_t> grey(std::string_view word) {
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc() && stop == word.data() + word.size();
  return whole && value <= 255 ? std::optional(static_cast<uint8_t>(value)) : std::nullopt;
}

/// Where the spaces are in a block, bit i for character i.
ARGOSY_KERNEL_INLINE uint64_t spaces_of(const char* block) {
  uint64_t spaces = 0;
#ifdef __SSE2__
  for (size_t i = 0; i < kBlock; i += 16) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const auto bits = _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(' ')));
    spaces |= static_cast<uint64_t>(bits) << i;
  }
#else
  for (size_t i = 0; i < kBlock; ++i) {
    spaces |= static_cast<uint64_t>(block[i] == ' ') << i;
  }
#endif
  return spaces;
}

/// All ones where the condition holds: selects by &, which needs no branch and fits into lanes.
ARGOSY_KERNEL_INLINE uint8_t mask(bool condition) {
  return static_cast<uint8_t>(-static_cast<int>(condition));
}

/// values[i]: the number that the digits up to block[i] make, modulo 256, at every i at once: most
/// are the beginnings of numbers only, but so no place waits for another. Looks at 3 characters
/// before the block. Nonzero unless all is digits and single spaces, and all numbers fit.
ARGOSY_KERNEL_INLINE uint8_t values_of(const char* block, uint8_t* values) {
  uint8_t bad = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const auto at = [&](size_t back) ARGOSY_KERNEL_LAMBDA {
      return static_cast<uint8_t>(block[static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(back)] -
                                  '0');
    };
    const uint8_t ones = at(0);
    const uint8_t tens_there = mask(at(1) <= 9);
    const uint8_t hundreds_there = mask(at(2) <= 9) & tens_there;
    const uint8_t tens = at(1) & tens_there;
    const uint8_t hundreds = at(2) & hundreds_there;
    const auto low = static_cast<uint8_t>(ones + tens * 10);
    values[i] = static_cast<uint8_t>(low + hundreds * 100);
    const uint8_t digit = mask(ones <= 9);
    const uint8_t space = mask(block[i] == ' ');
    bad |= static_cast<uint8_t>(~(digit | space));
    bad |= static_cast<uint8_t>(space & ~tens_there);  // no number before it
    bad |= digit & hundreds_there & mask(at(3) <= 9);
    bad |= digit & (mask(hundreds > 2) | (mask(hundreds == 2) & mask(low > 55)));
  }
  return bad;
}

/// Numbers that end before the spaces of `text`'s whole blocks, from `begin` on, where one begins,
/// as long as any block fits into `greys`. Moves `begin` behind the last space; returns their
/// count.
ARGOSY_KERNEL size_t greys_in_blocks(std::string_view text,
                                     size_t& begin,
                                     std::span<uint8_t> greys,
                                     uint8_t& bad) {
  std::array<uint8_t, kBlock + 1> values{};  // the block's, behind the last one of the block before
  uint8_t* grey = greys.data();
  uint8_t* const last = grey + greys.size();
  size_t behind = begin;
  uint8_t wrong = 0;
  for (size_t block = begin; block + kBlock <= text.size() && last - grey >= ptrdiff_t{kBlock};
       block += kBlock) {
    values[0] = values[kBlock];
    wrong |= values_of(text.data() + block, values.data() + 1);
    for (uint64_t spaces = spaces_of(text.data() + block); spaces != 0; spaces &= spaces - 1) {
      const auto at = static_cast<size_t>(std::countr_zero(spaces));
      *grey++ = values[at];
      behind = block + at + 1;
    }
  }
  begin = behind;
  bad |= wrong;
  return static_cast<size_t>(grey - greys.data());
}

/// The fast way: false where the text is anything but what the header calls fast.
bool fast_greys(std::string_view text, std::span<uint8_t> greys) {
  uint8_t bad = 0;
  size_t n = 0;
  size_t begin = 0;  // of the number that is not finished yet
  const auto take_until = [&](size_t until) {
    while (n < greys.size() && begin < until) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      const auto value = grey(text.substr(begin, end - begin));
      bad |= static_cast<uint8_t>(!value);
      greys[n++] = value.value_or(0);
      begin = end + 1;
    }
  };
  take_until(std::min<size_t>(4, text.size()));  // blocks look 3 characters back
  n += greys_in_blocks(text, begin, greys.subspan(n), bad);
  take_until(text.size());
  return bad == 0 && n == greys.size() && begin == text.size() + 1;
}

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

std::optional<std::string> greys_of(std::string_view text, std::span<uint8_t> greys) {
  if (fast_greys(text, greys)) {
    return std::nullopt;
  }
  size_t n = 0;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    const std::optional<uint8_t> value = grey(word);
    if (!value) {
      return fmt::format(
          "number {}: expected a grey value 0 to 255, got \"{}\"", n + 1, word.substr(0, 20));
    }
    if (n < greys.size()) {
      greys[n] = *value;
    }
    ++n;
  }
  if (n != greys.size()) {
    return fmt::format("expected {} grey values, got {}", greys.size(), n);
  }
  return std::nullopt;
}

size_t count_greys(std::string_view text) {
  size_t n = 0;
  while (!next_word(text).empty()) {
    ++n;
  }
  return n;
}

}  // namespace argosy::datasets
