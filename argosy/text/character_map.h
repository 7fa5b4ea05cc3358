#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::text {

/// The replacements of characters that a sentencepiece model brings for its normalizer: NFKC, and
/// what else the model's author chose.
/// Source: sentencepiece 0.2.1, src/normalizer.cc; the trie is one of darts-clone 0.32.
class CharacterMap final {
 public:
  CharacterMap() = default;
  /// Takes the blob as it stands in the model. `path` stands in errors.
  /// Errors: DataError when it is damaged.
  CharacterMap(std::string_view blob, const std::string& path);

  struct Match {
    size_t bytes = 0;  ///< 0: nothing is replaced here
    std::string_view replacement{};
  };
  /// Returns the replacement for the longest beginning of `text` that has one.
  [[nodiscard]] Match longest(std::string_view text) const;

 private:
  std::vector<uint32_t> units_{};
  std::string replacements_{};  // each ends with a zero
};

}  // namespace argosy::text
