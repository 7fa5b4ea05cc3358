#include "argosy/base/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace argosy::strings {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

namespace {

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text) {
  return parse<int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  return parse<double>(text);
}

namespace {

/// Where the escape sequence ends that begins at `at`: ESC [, then parameters, then a byte from '@'
/// to '~'. `at` if none begins there.
size_t after_escape(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("\x1b[")) {
    return at;
  }
  size_t end = at + 2;
  while (end < text.size() && text[end] >= ' ' && text[end] <= '?') {
    ++end;
  }
  return end < text.size() && text[end] >= '@' && text[end] <= '~' ? end + 1 : end;
}

struct Prefix {
  size_t bytes = 0;
  size_t columns = 0;
};

Prefix longest_prefix(std::string_view text, size_t most) {
  Prefix prefix;
  while (prefix.bytes < text.size()) {
    if (const size_t next = after_escape(text, prefix.bytes); next > prefix.bytes) {
      prefix.bytes = next;
      continue;
    }
    const bool starts_character = (static_cast<unsigned char>(text[prefix.bytes]) & 0xC0U) != 0x80U;
    if (starts_character && prefix.columns == most) {
      break;
    }
    prefix.columns += starts_character ? 1 : 0;
    ++prefix.bytes;
  }
  return prefix;
}

}  // namespace

std::string_view first_columns(std::string_view text, size_t most) {
  return text.substr(0, longest_prefix(text, most).bytes);
}

size_t columns(std::string_view text) {
  return longest_prefix(text, text.size()).columns;
}

std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ", ";
    text += last - i >= 2 ? fmt::format("{}-{}", numbers[i], numbers[last])
                          : fmt::format("{}", numbers[i]);
    i = last - i >= 2 ? last + 1 : i + 1;
  }
  return text;
}

namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::exchange(last, std::move(row));
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool equal_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

}  // namespace argosy::strings
