#include "argosy/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "argosy/text/utf8.h"

namespace argosy::text {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const auto place = static_cast<int32_t>(i);
    (token.normalized ? normalized_ : plain_).add(token.text, place);
    if (!token.special) {
      (token.normalized ? ordinary_normalized_ : ordinary_plain_).add(token.text, place);
    }
  }
}

void AddedTokens::split(std::string_view text, SpecialText special, const OnPart& on_part) const {
  const bool all = special == SpecialText::kIds;
  const Trie& later = all ? normalized_ : ordinary_normalized_;
  split_by(
      all ? plain_ : ordinary_plain_, text, [&](std::string_view part, std::optional<int32_t> id) {
        if (id || later.empty()) {
          on_part(part, id);
        } else {
          split_by(later, part, on_part);
        }
      });
}

void AddedTokens::split_by(const Trie& trie, std::string_view text, const OnPart& on_part) const {
  size_t done = 0;
  size_t at = 0;
  while (!trie.empty() && at < text.size()) {
    const Trie::Match match = trie.longest(text.substr(at));
    if (match.bytes == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    size_t begin = at;
    size_t end = at + match.bytes;
    at = end;
    if (begin < done) {  // white space that the token before it took
      continue;
    }
    if (token.lstrip) {
      begin = std::max(done, begin - trailing_space(text.substr(0, begin)));
    }
    if (token.rstrip) {
      end += leading_space(text.substr(end));
    }
    if (begin > done) {
      on_part(text.substr(done, begin - done), std::nullopt);
    }
    on_part(text.substr(begin, end - begin), token.id);
    done = end;
  }
  if (done < text.size()) {
    on_part(text.substr(done), std::nullopt);
  }
}

}  // namespace argosy::text
