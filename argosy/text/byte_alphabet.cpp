#include "argosy/text/byte_alphabet.h"

#include <array>
#include <unordered_map>

#include "argosy/text/utf8.h"

namespace argosy::text {
namespace {

bool printable_byte(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1U && byte <= 0xACU) || byte >= 0xAEU;
}

std::string utf8_of(char32_t character) {
  if (character < 0x80) {
    return {static_cast<char>(character)};
  }
  return {static_cast<char>(0xC0U | character >> 6),
          static_cast<char>(0x80U | (character & 0x3FU))};
}

struct Alphabet {
  std::array<char32_t, 256> code_points{};
  std::array<std::string, 256> characters{};
  std::unordered_map<std::string, char> bytes{};

  Alphabet() {
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      code_points[byte] = printable_byte(byte) ? char32_t{byte} : next++;
      characters[byte] = utf8_of(code_points[byte]);
      bytes.emplace(characters[byte], static_cast<char>(byte));
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet shared;
  return shared;
}

}  // namespace

const std::string& byte_character(unsigned char byte) {
  return alphabet().characters[byte];
}

char32_t byte_code_point(unsigned char byte) {
  return alphabet().code_points[byte];
}

std::string to_byte_characters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += byte_character(static_cast<unsigned char>(byte));
  }
  return text;
}

std::optional<std::string> from_byte_characters(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const size_t size = character_bytes(text);
    const auto byte = alphabet().bytes.find(std::string(text.substr(0, size)));
    if (size == 0 || byte == alphabet().bytes.end()) {
      return std::nullopt;
    }
    bytes += byte->second;
    text.remove_prefix(size);
  }
  return bytes;
}

}  // namespace argosy::text
