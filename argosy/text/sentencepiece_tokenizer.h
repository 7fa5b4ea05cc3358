#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argosy/text/character_map.h"
#include "argosy/text/sentencepiece_model.h"
#include "argosy/text/tokenizer_impl.h"
#include "argosy/text/trie.h"

namespace argosy::text {

/// Returns the tokenizer of a .model file of sentencepiece: BPE (Llama 2) or unigram (T5).
/// Errors: DataError when the file cannot be read, is damaged, or is of a kind that is not read.
[[nodiscard]] Tokenizer read_sentencepiece(const std::string& path);

/// Encodes as sentencepiece does, to the id.
///
/// As there, the name of a control token in a text is ordinary text, whatever SpecialText says, and
/// user-defined pieces are found in it always. Bytes that are not UTF-8 become U+FFFD.
/// Source: sentencepiece 0.2.1,
/// src/{normalizer,bpe_model,unigram_model,sentencepiece_processor}.cc.
class SentencepieceTokenizer final : public TokenizerImpl {
 public:
  SentencepieceTokenizer(SentencepieceModel model, uint64_t digest, const std::string& path);

  void encode(std::string_view text, SpecialText special, std::vector<int32_t>& ids) const override;
  [[nodiscard]] std::string decode(const std::vector<int32_t>& ids) const override;
  [[nodiscard]] int64_t vocab_size() const override;
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override;
  [[nodiscard]] std::optional<std::string> token(int32_t id) const override;

 private:
  using Type = SentencepieceModel::Type;
  class BpeWord;
  struct Piece {
    std::string_view text{};
    int32_t id = 0;
  };

  [[nodiscard]] std::string normalized(std::string_view text) const;
  void append_normalized(std::string_view part, std::string& text) const;
  [[nodiscard]] std::vector<Piece> by_bpe(std::string_view text) const;
  [[nodiscard]] std::vector<Piece> by_unigram(std::string_view text) const;
  [[nodiscard]] Type type_of(int32_t id) const;
  [[nodiscard]] int32_t id_or_unknown(std::string_view piece) const;
  [[nodiscard]] std::string surface(int32_t id, bool strip, bool& stripped) const;

  SentencepieceModel model_;
  CharacterMap characters_;
  std::unordered_map<std::string_view, int32_t> ids_{};     // of the text's own pieces
  std::unordered_map<std::string_view, int32_t> others_{};  // control, unknown and bytes
  Trie pieces_{};                                           // for unigram: the text's own pieces
  Trie user_defined_{};
  std::vector<int32_t> byte_ids_{};  // 256, or empty
  int32_t unknown_ = 0;
  float least_score_ = 0;
  float most_score_ = 0;
};

}  // namespace argosy::text
