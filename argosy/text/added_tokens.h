#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/text/tokenizer.h"
#include "argosy/text/trie.h"

namespace argosy::text {

/// A token that is found in the text itself, before the text is cut into words.
struct AddedToken {
  std::string text{};
  int32_t id = 0;
  bool special = false;
  bool lstrip = false;      ///< takes the white space before it
  bool rstrip = false;      ///< takes the white space behind it
  bool normalized = false;  ///< looked for after those that are not
};

/// Finds added tokens in a text, as Hugging Face's tokenizers do: from the left, of those that
/// begin at a place the longest; those that are not `normalized` first. Source: tokenizers 0.23,
/// src/tokenizer/added_vocabulary.rs.
class AddedTokens final {
 public:
  AddedTokens() = default;
  /// Ids are in use, and texts are not empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Part of a text: a token, or text with none.
  using OnPart = std::function<void(std::string_view text, std::optional<int32_t> id)>;
  void split(std::string_view text, SpecialText special, const OnPart& on_part) const;

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  void split_by(const Trie& trie, std::string_view text, const OnPart& on_part) const;

  std::vector<AddedToken> tokens_{};
  Trie plain_{};       // values: places in tokens_
  Trie normalized_{};  // the same
  // Without those that are special.
  Trie ordinary_plain_{};
  Trie ordinary_normalized_{};
};

}  // namespace argosy::text
