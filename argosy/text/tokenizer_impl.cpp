#include "argosy/text/tokenizer_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "argosy/base/error.h"

namespace argosy::text {
namespace {

/// Returns the first of these names that a special token has.
std::optional<int32_t> first_of(const std::vector<SpecialToken>& special,
                                std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const SpecialToken& token : special) {
      if (token.text == name) {
        return token.id;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void TokenizerFacts::find_roles() {
  const auto set = [&](std::optional<int32_t>& role,
                       std::initializer_list<std::string_view> names) {
    if (!role) {
      role = first_of(special, names);
    }
  };
  set(begin_of_text, {"<|begin_of_text|>", "<s>", "<bos>", "[BOS]"});
  set(end_of_text, {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"});
  set(pad, {"<pad>", "<|pad|>", "[PAD]"});
}

bool TokenizerFacts::is_special(int32_t id) const {
  const auto found = std::lower_bound(
      special.begin(), special.end(), id, [](const SpecialToken& token, int32_t wanted) {
        return token.id < wanted;
      });
  return found != special.end() && found->id == id;
}

void TokenizerImpl::save(const std::string& /*folder*/) const {
  throw UsageError("text.save",
                   fmt::format("vocab.json and merges.txt hold a byte-level BPE, and this is a "
                               "tokenizer of the kind {}. Copy its own file",
                               facts().kind));
}

}  // namespace argosy::text
