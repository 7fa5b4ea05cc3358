#include "argosy/text/character_map.h"

#include "argosy/base/error.h"

namespace argosy::text {
namespace {

uint32_t little(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

// The fields of a unit of darts-clone.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1U) == 1;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FFU;
}
uint32_t offset_of(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200U) >> 6);
}

}  // namespace

CharacterMap::CharacterMap(std::string_view blob, const std::string& path) {
  if (blob.empty()) {
    return;
  }
  const uint32_t trie = blob.size() < 4 ? 0 : little(blob);
  if (trie == 0 || trie % 4 != 0 || trie > blob.size() - 4) {
    throw DataError("text.sentencepiece",
                    "damaged: the normalizer's map of characters contradicts its length. Fetch the "
                    "file again",
                    {path});
  }
  for (size_t at = 4; at < 4 + size_t{trie}; at += 4) {
    units_.push_back(little(blob.substr(at)));
  }
  replacements_ = blob.substr(4 + size_t{trie});
  replacements_ += '\0';
}

CharacterMap::Match CharacterMap::longest(std::string_view text) const {
  Match match;
  if (units_.empty()) {
    return match;
  }
  size_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) {
      break;
    }
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (has_leaf(unit) && node < units_.size() && value_of(units_[node]) < replacements_.size()) {
      match = {i + 1, replacements_.c_str() + value_of(units_[node])};
    }
  }
  return match;
}

}  // namespace argosy::text
