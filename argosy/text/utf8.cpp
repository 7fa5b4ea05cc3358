#include "argosy/text/utf8.h"

#include <algorithm>
#include <array>

namespace argosy::text {
namespace {

unsigned byte_at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

bool continues(std::string_view text, size_t i) {
  return i < text.size() && (byte_at(text, i) & 0xC0U) == 0x80U;
}

constexpr std::array<std::string_view, 25> kSpaces = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

}  // namespace

size_t character_bytes(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const unsigned first = byte_at(text, 0);
  if (first < 0x80U) {
    return 1;
  }
  if (first < 0xC2U || first > 0xF4U || !continues(text, 1)) {
    return 0;
  }
  if (first < 0xE0U) {
    return 2;
  }
  const unsigned second = byte_at(text, 1);
  if (first < 0xF0U) {
    const bool overlong = first == 0xE0U && second < 0xA0U;
    const bool surrogate = first == 0xEDU && second >= 0xA0U;
    return !overlong && !surrogate && continues(text, 2) ? 3 : 0;
  }
  const bool overlong = first == 0xF0U && second < 0x90U;
  const bool above = first == 0xF4U && second >= 0x90U;
  return !overlong && !above && continues(text, 2) && continues(text, 3) ? 4 : 0;
}

size_t promised_bytes(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  const size_t promised = first < 0xC0U ? 1 : first < 0xE0U ? 2 : first < 0xF0U ? 3 : 4;
  return std::min(promised, text.size());
}

size_t leading_space(std::string_view text) {
  size_t bytes = 0;
  const auto begins = [&](std::string_view space) { return text.substr(bytes).starts_with(space); };
  while (true) {
    const auto* const space = std::find_if(kSpaces.begin(), kSpaces.end(), begins);
    if (space == kSpaces.end()) {
      return bytes;
    }
    bytes += space->size();
  }
}

size_t trailing_space(std::string_view text) {
  const size_t all = text.size();
  const auto ends = [&](std::string_view space) { return text.ends_with(space); };
  while (true) {
    const auto* const space = std::find_if(kSpaces.begin(), kSpaces.end(), ends);
    if (space == kSpaces.end()) {
      return all - text.size();
    }
    text.remove_suffix(space->size());
  }
}

}  // namespace argosy::text
