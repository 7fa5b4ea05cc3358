#include "argosy/text/byte_tokenizer.h"

#include <memory>

#include "argosy/base/fingerprint.h"

namespace argosy::text {
namespace {

constexpr int32_t kEndOfText = 256;
constexpr std::string_view kEndName = "<|endoftext|>";

TokenizerFacts byte_facts() {
  Fingerprint fingerprint;
  fingerprint.add("bytes and an end of text");
  TokenizerFacts facts{.kind = "bytes",
                       .special = {{kEndOfText, std::string(kEndName)}},
                       .digest = fingerprint.value()};
  facts.find_roles();
  return facts;
}

void append_bytes(std::string_view text, std::vector<int32_t>& ids) {
  for (const char byte : text) {
    ids.push_back(static_cast<unsigned char>(byte));
  }
}

}  // namespace

ByteTokenizer::ByteTokenizer() : TokenizerImpl(byte_facts()) {}

void ByteTokenizer::encode(std::string_view text,
                           SpecialText special,
                           std::vector<int32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  while (special == SpecialText::kIds) {
    const size_t at = text.find(kEndName);
    if (at == std::string_view::npos) {
      break;
    }
    append_bytes(text.substr(0, at), ids);
    ids.push_back(kEndOfText);
    text.remove_prefix(at + kEndName.size());
  }
  append_bytes(text, ids);
}

std::string ByteTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const int32_t id : ids) {
    if (id == kEndOfText) {
      text += kEndName;
    } else {
      text += static_cast<char>(id);
    }
  }
  return text;
}

int64_t ByteTokenizer::vocab_size() const {
  return kEndOfText + 1;
}

std::optional<int32_t> ByteTokenizer::id_of(std::string_view token) const {
  if (token.size() == 1) {
    return static_cast<unsigned char>(token.front());
  }
  return token == kEndName ? std::optional(kEndOfText) : std::nullopt;
}

std::optional<std::string> ByteTokenizer::token(int32_t id) const {
  if (id < 0 || id > kEndOfText) {
    return std::nullopt;
  }
  return id == kEndOfText ? std::string(kEndName) : std::string(1, static_cast<char>(id));
}

Tokenizer byte_tokenizer() {
  static const auto shared = std::make_shared<const ByteTokenizer>();
  return Tokenizer(shared);
}

}  // namespace argosy::text
