#include "argosy/formats/pickle_text.h"

#include <algorithm>

namespace argosy::formats {
namespace {

constexpr uint32_t kLargestCode = 0x10ffff;

/// The value of `count` digits at `at`; nullopt where there are fewer.
std::optional<uint32_t> digits(std::string_view text, size_t at, size_t count, uint32_t base) {
  if (text.size() < at + count) {
    return std::nullopt;
  }
  uint32_t value = 0;
  for (const char c : text.substr(at, count)) {
    uint32_t digit = 99;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      digit = static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    }
    if (digit >= base) {
      return std::nullopt;
    }
    value = value * base + digit;
  }
  return value;
}

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

/// One escape of a literal, `at` behind its backslash; moves `at` on. False: not one.
bool decode_escape(std::string_view body, size_t& at, std::string& text) {
  constexpr std::string_view kNames = "\\'\"abfnrtv";
  constexpr std::string_view kMeant = "\\'\"\a\b\f\n\r\t\v";
  const char c = body[at];
  if (const size_t known = kNames.find(c); known != std::string_view::npos) {
    text += kMeant[known];
    ++at;
  } else if (c == 'x') {
    const auto code = digits(body, at + 1, 2, 16);
    if (!code) {
      return false;
    }
    text += static_cast<char>(*code);
    at += 3;
  } else if (c >= '0' && c <= '7') {
    uint32_t code = 0;
    const size_t end = std::min(at + 3, body.size());
    for (; at < end && body[at] >= '0' && body[at] <= '7'; ++at) {
      code = code * 8 + static_cast<uint32_t>(body[at] - '0');
    }
    text += static_cast<char>(code);
  } else {  // as Python: no escape, both characters stand
    text += '\\';
  }
  return true;
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

void append_utf8(std::string& text, uint32_t code) {
  const auto tail = [&](unsigned shift) {
    text += static_cast<char>(0x80 | (code >> shift & 0x3f));
  };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string latin1_to_utf8(std::string_view bytes) {
  const auto high =
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0x80) != 0; });
  std::string text;
  text.reserve(bytes.size() + static_cast<size_t>(high));
  for (const char c : bytes) {
    append_utf8(text, static_cast<uint8_t>(c));
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

std::optional<std::string> decode_raw_unicode_escape(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    const bool escape = line[i] == '\\' && i + 1 < line.size() && (line[i + 1] | 0x20) == 'u';
    if (!escape) {
      append_utf8(text, static_cast<uint8_t>(line[i++]));
      continue;
    }
    const size_t count = line[i + 1] == 'u' ? 4 : 8;
    const auto code = digits(line, i + 2, count, 16);
    if (!code || *code > kLargestCode) {
      return std::nullopt;
    }
    append_utf8(text, *code);
    i += 2 + count;
  }
  return text;
}

std::optional<std::string> decode_string_literal(std::string_view line) {
  const bool quoted = line.size() >= 2 && line.front() == line.back() &&
                      (line.front() == '\'' || line.front() == '"');
  if (!quoted) {
    return std::nullopt;
  }
  const std::string_view body = line.substr(1, line.size() - 2);
  std::string text;
  text.reserve(body.size());
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\') {
      text += body[i++];
    } else if (++i == body.size() || !decode_escape(body, i, text)) {
      return std::nullopt;
    }
  }
  return text;
}

}  // namespace argosy::formats
