#include "argosy/rendezvous/file_names.h"

#include <fmt/format.h>

#include <cstdint>

namespace argosy::rendezvous {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// FNV-1a. Source: Fowler, Noll, Vo; http://www.isthe.com/chongo/tech/comp/fnv (offset and prime).
uint64_t fnv1a(std::string_view text, uint64_t hash) {
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (is_plain(c) && !(c == '.' && escaped.empty())) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::optional<std::string> unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!is_plain(text[i])) {
        return std::nullopt;
      }
      plain += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

std::string file_name(std::string_view key) {
  constexpr size_t kLongest = 200;
  constexpr size_t kBeginning = 100;
  std::string name = escape(key);
  if (name.size() <= kLongest) {
    return name;
  }
  return fmt::format("{}~{:016x}{:016x}",
                     name.substr(0, kBeginning),
                     fnv1a(key, 0xcbf29ce484222325),
                     fnv1a(key, 0x9ae16a3b2f90404f));  // another start: an independent-enough hash
}

bool is_hashed(std::string_view file_name) {
  return file_name.find('~') != std::string_view::npos;
}

}  // namespace argosy::rendezvous
