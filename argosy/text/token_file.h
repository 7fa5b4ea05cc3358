#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// How a file holds a token, as a little-endian number.
enum class TokenWidth : uint8_t {
  k16 = 2,  ///< for vocabularies of up to 65,536 tokens
  k32 = 4
};

struct TokenFileOptions {
  /// The width of tokens in a file without a header. nanoGPT's train.bin has 16 bits.
  TokenWidth headerless = TokenWidth::k16;
};

/// What the header of a token file says. A file without a header says nothing.
struct TokenFileFacts {
  std::optional<uint64_t> tokenizer{};  ///< Tokenizer::digest()
  std::optional<int64_t> vocab_size{};
  std::optional<int64_t> documents{};    ///< number of documents
  std::optional<int32_t> end_of_text{};  ///< the token behind each document
};

/// The tokens of many documents, one after another, on the disk.
///
///     text::TokenFile tokens("books.tokens");
///     tokens.check_made_by(tokenizer);
///     for (int32_t id : tokens.ids(0, 20)) ...
///
/// The file is mapped: it takes no memory but the system's cache, which processes share. Files of
/// nanoGPT, which are tokens and nothing else, are read as well. A TokenFileWriter writes this:
///
///     8 bytes magic "ARGOTOK\n" · u32 version = 1 · u32 bytes of a token: 2 or 4 · u64 tokens ·
///     u64 documents · u64 the tokenizer's digest · u64 vocab_size · u64 1 + the token behind each
///     document, or 0 · u64 checksum (FNV-1a) of the 56 bytes before it · tokens
///
/// All numbers are little-endian.
/// A handle: copies share the mapping. Thread-safe. The file must not be cut short while it is
/// open, or a reader dies by SIGBUS; a rename over it is fine. Errors: DataError with path when it
/// cannot be opened, is torn or has another version.
class TokenFile final {
 public:
  explicit TokenFile(const std::string& path, const TokenFileOptions& options = {});

  /// Number of tokens.
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] int32_t operator[](int64_t index) const;
  /// Copies tokens `first`, first + 1, … until `out` is full.
  /// Errors: UsageError when they go beyond the file.
  void copy(int64_t first, std::span<int64_t> out) const;
  [[nodiscard]] std::vector<int32_t> ids(int64_t first, int64_t count) const;

  [[nodiscard]] const TokenFileFacts& facts() const;
  [[nodiscard]] TokenWidth width() const;
  [[nodiscard]] const std::string& path() const;
  /// Errors: DataError when another tokenizer made the file. Without a header nobody can tell.
  void check_made_by(const Tokenizer& tokenizer) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Writes a token file.
///
///     text::TokenFileWriter out("books.tokens", tokenizer);
///     for (…) { out.append(tokenizer.encode(text)); out.end_document(); }
///     out.finish();
///
/// The width of a token follows from the size of the vocabulary. The file appears with finish(),
/// whole and on the disk. A writer that is destroyed before leaves nothing. Not thread-safe.
/// Errors: UsageError for a tokenizer without an end of text, an id outside its vocabulary, and
/// append() after finish(); DataError with path when the file cannot be written.
class TokenFileWriter final {
 public:
  TokenFileWriter(const std::string& path, const Tokenizer& tokenizer);
  ~TokenFileWriter();
  TokenFileWriter(TokenFileWriter&&) noexcept;
  TokenFileWriter& operator=(TokenFileWriter&&) noexcept;
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  void append(std::span<const int32_t> ids);
  /// Appends the end of a text.
  void end_document();
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] int64_t documents() const;
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::text
