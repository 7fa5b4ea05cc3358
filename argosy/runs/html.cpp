#include "argosy/runs/html.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace argosy::runs {
namespace {

/// nlohmann's dump knows what is UTF-8.
std::string valid_utf8(std::string_view text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          result += "\xef\xbf\xbd";
        } else {
          result += c;
        }
    }
  }
  return result;
}

std::string script_json(std::string_view json) {
  std::string result;
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";  // in JSON, "<" stands in strings only
    } else {
      result += c;
    }
  }
  return result;
}

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kLetters[group >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::string shown_number(double value) {
  const bool whole =
      std::isfinite(value) && (value == std::round(value) || std::abs(value) >= 1000);
  if (whole && std::abs(value) < 1e15) {
    std::string digits = fmt::format("{:.0f}", std::abs(value));
    for (auto at = static_cast<ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
      digits.insert(static_cast<size_t>(at), ",");
    }
    return (value < 0 ? "-" : "") + digits;
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace argosy::runs
