#include "argosy/formats/shown_name.h"

#include <fmt/format.h>

#include <cstdint>

#include "argosy/base/text.h"

namespace argosy::formats {

std::string shown_name(std::string_view name) {
  constexpr size_t kMost = 120;
  size_t size = std::min(name.size(), kMost);
  while (size < name.size() && size > 0 && (static_cast<uint8_t>(name[size]) & 0xc0) == 0x80) {
    --size;  // not in the middle of a character
  }
  std::string text;
  for (const char c : name.substr(0, size)) {
    const auto byte = static_cast<uint8_t>(c);
    text += text::is_control(c) ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return size == name.size() ? text : fmt::format("{}… ({} bytes)", text, name.size());
}

}  // namespace argosy::formats
