#include "argosy/text/trie.h"

namespace argosy::text {
namespace {

uint64_t edge(int32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

void Trie::add(std::string_view key, int32_t value) {
  first_[static_cast<unsigned char>(key.front())] = true;
  int32_t node = kRoot;
  for (const char byte : key) {
    const auto [child, added] =
        children_.try_emplace(edge(node, byte), static_cast<int32_t>(values_.size()));
    if (added) {
      values_.push_back(kNone);
    }
    node = child->second;
  }
  values_[static_cast<size_t>(node)] = value;
}

int32_t Trie::next(int32_t node, char byte) const {
  const auto child = children_.find(edge(node, byte));
  return child == children_.end() ? kNone : child->second;
}

Trie::Match Trie::longest(std::string_view text) const {
  Match match;
  if (text.empty() || !first_[static_cast<unsigned char>(text.front())]) {
    return match;
  }
  int32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = next(node, text[i]);
    if (node == kNone) {
      break;
    }
    if (value(node) != kNone) {
      match = {i + 1, value(node)};
    }
  }
  return match;
}

}  // namespace argosy::text
