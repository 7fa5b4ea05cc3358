#include "argosy/datasets/grays.h"

#include <fmt/format.h>

#include <algorithm>

namespace argosy::datasets {
namespace {

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

std::optional<std::string> grays_of(std::string_view text, std::span<uint8_t> grays) {
  const char* at = text.data();
  const char* const end = at + text.size();
  size_t n = 0;
  while (true) {
    while (at != end && *at == ' ') {
      ++at;
    }
    if (at == end) {
      break;
    }
    const char* const begin = at;
    unsigned value = 0;
    while (at != end && *at != ' ' && value <= 255) {
      const auto digit = static_cast<unsigned>(static_cast<unsigned char>(*at++)) - '0';
      value = digit <= 9 ? 10 * value + digit : 256;
    }
    if (value > 255) {
      std::string_view rest(begin, static_cast<size_t>(end - begin));
      return fmt::format("number {}: expected a gray value 0 to 255, got \"{}\"",
                         n + 1,
                         next_word(rest).substr(0, 20));
    }
    if (n < grays.size()) {
      grays[n] = static_cast<uint8_t>(value);
    }
    ++n;
  }
  return n == grays.size()
             ? std::nullopt
             : std::optional(fmt::format("expected {} gray values, got {}", grays.size(), n));
}

size_t count_grays(std::string_view text) {
  size_t n = 0;
  while (!next_word(text).empty()) {
    ++n;
  }
  return n;
}

}  // namespace argosy::datasets
