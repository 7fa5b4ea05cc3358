#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace argosy::text {

/// Two tokens that become one. A merge that stands earlier in the list comes first.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
};

/// Byte pair encoding of one word: its bytes, of which pairs are merged.
/// Source: Sennrich, Haddow & Birch, "Neural Machine Translation of Rare Words with Subword Units",
/// ACL 2016, algorithm 1; on bytes as Radford et al. 2019.
class BpeModel final {
 public:
  /// The text of a token, in bytes. nullopt: no token of the model has this id.
  using Tokens = std::vector<std::optional<std::string>>;

  /// A text that two tokens have belongs to the one with the lower id. Ids of merges are in use.
  BpeModel(Tokens tokens, std::vector<BpeMerge> merges);

  /// How encode() begins.
  enum class WholeWords {
    kMerged,  ///< by merges alone
    kFirst    ///< a word that is a token is that token, as in Llama 3's tokenizer
  };
  /// Appends the ids of `word`. Returns the first byte that no token stands for, if there is one.
  /// Cost: n log n for n bytes.
  std::optional<unsigned char> encode(std::string_view word,
                                      WholeWords whole_words,
                                      std::vector<int32_t>& ids) const;

  [[nodiscard]] const Tokens& tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<BpeMerge>& merges() const { return merges_; }
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const;

 private:
  struct Step {
    int32_t rank = 0;
    int32_t result = 0;
  };
  struct HashOfText {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct HashOfPair {
    size_t operator()(uint64_t pair) const { return pair * 0x9e3779b97f4a7c15ULL >> 20; }
  };
  class Word;

  Tokens tokens_;
  std::vector<BpeMerge> merges_;
  std::unordered_map<std::string, int32_t, HashOfText, std::equal_to<>> ids_{};
  std::unordered_map<uint64_t, Step, HashOfPair> steps_{};  // by left and right
  std::array<int32_t, 256> bytes_{};                        // -1: no token
};

}  // namespace argosy::text
