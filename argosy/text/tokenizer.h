#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::text {

/// A token that stands for no text of its own, such as the end of a document.
struct SpecialToken {
  int32_t id = 0;
  std::string text{};  ///< its name: "<|endoftext|>"

  friend bool operator==(const SpecialToken&, const SpecialToken&) = default;
};

/// What the name of a special token becomes where it stands in a text.
enum class SpecialText : uint8_t {
  kIds,   ///< the special token, as in Hugging Face's tokenizers
  kPlain  ///< the tokens of its letters: a stranger's text ends no document
};

struct EncodeTextOptions {
  SpecialText special_text = SpecialText::kIds;
  bool bos = false;  ///< put the token that begins a text in front
  bool eos = false;  ///< append the token that ends a text
};

struct DecodeTextOptions {
  bool skip_special = false;  ///< leave out special tokens instead of writing their names
};

class TokenizerImpl;

/// Turns text into numbers of tokens, and back.
///
///     text::Tokenizer tokenizer = text::open_tokenizer("gpt2");  // a folder, or a file
///     std::vector<int32_t> ids = tokenizer.encode("Hello world");
///     std::string same = tokenizer.decode(ids);
///
/// A handle: copies share one immutable tokenizer. Thread-safe.
/// Exactness: encode() gives the ids of the library whose file it reads (Hugging Face's tokenizers,
/// sentencepiece); tests/golden/text compares them. Text need not be UTF-8: byte-level tokenizers
/// give every byte back.
class Tokenizer final {
 public:
  /// Used by the functions that open and make tokenizers.
  explicit Tokenizer(std::shared_ptr<const TokenizerImpl> impl);

  /// Errors: UsageError for bos or eos where the tokenizer has no such token; DataError for a byte
  /// that the vocabulary of a byte-level BPE lacks.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text,
                                            const EncodeTextOptions& options = {}) const;
  /// Errors: UsageError naming the first id that no token has, and its position.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids,
                                   const DecodeTextOptions& options = {}) const;

  /// Returns one more than the highest id, which is the number of rows that an embedding needs.
  [[nodiscard]] int64_t vocab_size() const;
  /// Returns the id of a token, by its text or its special name: " the", "<|endoftext|>". A token
  /// of sentencepiece goes by its piece: "▁the". nullopt: there is none.
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const;
  /// Returns what id_of() takes. Errors: UsageError when no token has this id.
  [[nodiscard]] std::string token(int32_t id) const;

  /// Ascending by id.
  [[nodiscard]] const std::vector<SpecialToken>& special_tokens() const;
  /// The token between documents: "<|endoftext|>", "</s>". nullopt: there is none.
  [[nodiscard]] std::optional<int32_t> end_of_text() const;
  [[nodiscard]] std::optional<int32_t> begin_of_text() const;
  [[nodiscard]] std::optional<int32_t> pad() const;

  /// Returns what it is, for people: "byte-level BPE".
  [[nodiscard]] const std::string& kind() const;
  /// Returns a number that differs where another tokenizer gives other ids. Token files hold it.
  [[nodiscard]] uint64_t digest() const;

  /// Writes vocab.json and merges.txt into `folder`, which is made if it is missing. Hugging Face's
  /// tokenizers and open_tokenizer() read them.
  /// Errors: UsageError unless it is a byte-level BPE that splits text as GPT-2 does, because the
  /// files cannot say more; DataError when they cannot be written.
  void save(const std::string& folder) const;

 private:
  std::shared_ptr<const TokenizerImpl> impl_;
};

/// Returns the tokenizer whose ids 0 to 255 are the bytes of a text, and 256 is "<|endoftext|>".
[[nodiscard]] Tokenizer byte_tokenizer();

}  // namespace argosy::text
