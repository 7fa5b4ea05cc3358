#include "argosy/formats/pickle_text.h"

#include <algorithm>

namespace argosy::formats {
namespace {

/// Bytes that a character of UTF-8 takes, by its first one; 0: no character begins so.
size_t utf8_length(uint8_t first) {
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return 2;
  }
  if ((first & 0xf0) == 0xe0) {
    return 3;
  }
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// The lowest and the highest second byte: neither overlong forms nor codes beyond 10ffff.
std::pair<uint8_t, uint8_t> second_bytes(uint8_t first) {
  switch (first) {
    case 0xe0:
      return {0xa0, 0xbf};
    case 0xf0:
      return {0x90, 0xbf};
    case 0xf4:
      return {0x80, 0x8f};
    default:
      return {0x80, 0xbf};
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t length = utf8_length(first);
    if (length == 0 || text.size() - i < length) {
      return false;
    }
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + k]);
      const auto [low, high] =
          k == 1 ? second_bytes(first) : std::pair<uint8_t, uint8_t>{0x80, 0xbf};
      if (byte < low || byte > high) {
        return false;
      }
    }
    i += length;
  }
  return true;
}

std::string latin1_to_utf8(std::string_view bytes) {
  const auto high =
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0x80) != 0; });
  std::string text;
  text.reserve(bytes.size() + static_cast<size_t>(high));
  for (const char c : bytes) {
    if ((c & 0x80) == 0) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | static_cast<uint8_t>(c) >> 6);
      text += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> utf8_to_latin1(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<uint8_t>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if ((first == 0xc2 || first == 0xc3) && i + 1 < text.size()) {
      bytes += static_cast<char>((first & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace argosy::formats
