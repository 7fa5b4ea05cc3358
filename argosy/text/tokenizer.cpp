#include "argosy/text/tokenizer.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/text/tokenizer_impl.h"

namespace argosy::text {
namespace {

int32_t role(const std::optional<int32_t>& id, const char* what, const std::string& kind) {
  ARGOSY_CHECK(id.has_value(),
               "text.encode",
               "option {}: this tokenizer ({}) has no such token. Leave it out, or add the id of "
               "yours to what encode() returns",
               what,
               kind);
  return *id;
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerImpl> impl) : impl_(std::move(impl)) {}

std::vector<int32_t> Tokenizer::encode(std::string_view text,
                                       const EncodeTextOptions& options) const {
  const TokenizerFacts& facts = impl_->facts();
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 2);
  if (options.bos) {
    ids.push_back(role(facts.begin_of_text, "bos", facts.kind));
  }
  impl_->encode(text, options.special_text, ids);
  if (options.eos) {
    ids.push_back(role(facts.end_of_text, "eos", facts.kind));
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              const DecodeTextOptions& options) const {
  std::vector<int32_t> kept;
  kept.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ARGOSY_CHECK(impl_->token(ids[i]).has_value(),
                 "text.decode",
                 "no token has the id {} (position {}): expected 0 to {}. Do the ids belong to "
                 "another tokenizer?",
                 ids[i],
                 i,
                 vocab_size() - 1);
    if (!options.skip_special || !impl_->facts().is_special(ids[i])) {
      kept.push_back(ids[i]);
    }
  }
  return impl_->decode(kept);
}

int64_t Tokenizer::vocab_size() const {
  return impl_->vocab_size();
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  return impl_->id_of(token);
}

std::string Tokenizer::token(int32_t id) const {
  const std::optional<std::string> token = impl_->token(id);
  ARGOSY_CHECK(
      token, "text.token", "no token has the id {}: expected 0 to {}", id, vocab_size() - 1);
  return *token;
}

const std::vector<SpecialToken>& Tokenizer::special_tokens() const {
  return impl_->facts().special;
}

std::optional<int32_t> Tokenizer::end_of_text() const {
  return impl_->facts().end_of_text;
}

std::optional<int32_t> Tokenizer::begin_of_text() const {
  return impl_->facts().begin_of_text;
}

std::optional<int32_t> Tokenizer::pad() const {
  return impl_->facts().pad;
}

const std::string& Tokenizer::kind() const {
  return impl_->facts().kind;
}

uint64_t Tokenizer::digest() const {
  return impl_->facts().digest;
}

void Tokenizer::save(const std::string& folder) const {
  impl_->save(folder);
}

}  // namespace argosy::text
