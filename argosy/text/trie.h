#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace argosy::text {

/// Finds which of many keys a text begins with. Keys are bytes, and none is empty.
class Trie final {
 public:
  static constexpr int32_t kRoot = 0;
  static constexpr int32_t kNone = -1;

  /// A second value of one key replaces the first. Values are not negative.
  void add(std::string_view key, int32_t value);
  [[nodiscard]] bool empty() const { return children_.empty(); }

  /// Returns the node behind `byte`, or kNone.
  [[nodiscard]] int32_t next(int32_t node, char byte) const;
  /// Returns the value of the key that ends at this node, or kNone.
  [[nodiscard]] int32_t value(int32_t node) const { return values_[static_cast<size_t>(node)]; }

  struct Match {
    size_t bytes = 0;  ///< 0: the text begins with no key
    int32_t value = kNone;
  };
  /// Returns the longest key with which `text` begins.
  [[nodiscard]] Match longest(std::string_view text) const;

 private:
  std::unordered_map<uint64_t, int32_t> children_{};  // by node and byte
  std::array<bool, 256> first_{};                     // bytes with which a key begins
  std::vector<int32_t> values_{kNone};
};

}  // namespace argosy::text
