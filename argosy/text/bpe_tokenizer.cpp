#include "argosy/text/bpe_tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"
#include "argosy/text/gpt2_files.h"

namespace argosy::text {
namespace {

void add_text(Fingerprint& fingerprint, std::string_view text) {
  fingerprint.add(static_cast<uint64_t>(text.size()));
  fingerprint.add(text);
}

uint64_t digest_of(const BpeParts& parts) {
  Fingerprint fingerprint;
  for (const auto& token : parts.tokens) {
    add_text(fingerprint, token ? *token : std::string_view("\0none", 5));
  }
  for (const BpeMerge& merge : parts.merges) {
    fingerprint.add(merge.left);
    fingerprint.add(merge.right);
    fingerprint.add(merge.result);
  }
  for (const AddedToken& token : parts.added) {
    add_text(fingerprint, token.text);
    fingerprint.add(token.id);
    fingerprint.add(token.lstrip);
    fingerprint.add(token.rstrip);
    fingerprint.add(token.normalized);
  }
  for (const PreTokenizerStep& step : parts.steps) {
    fingerprint.add(step.prefix_space);
    if (step.splitter) {
      add_text(fingerprint, step.splitter->pattern());
      fingerprint.add(step.splitter->keep());
    }
  }
  fingerprint.add(parts.whole_words);
  return fingerprint.value();
}

TokenizerFacts facts_of(const BpeParts& parts) {
  TokenizerFacts facts{.kind = "byte-level BPE",
                       .begin_of_text = parts.begin_of_text,
                       .end_of_text = parts.end_of_text,
                       .pad = parts.pad,
                       .digest = digest_of(parts)};
  for (const AddedToken& token : parts.added) {
    if (token.special) {
      facts.special.push_back({token.id, token.text});
    }
  }
  std::sort(facts.special.begin(), facts.special.end(), [](const auto& a, const auto& b) {
    return a.id < b.id;
  });
  facts.find_roles();
  return facts;
}

/// A long text has most of its words many times.
constexpr size_t kRemembersFrom = 2048;  // bytes of text
constexpr size_t kMostRemembered = 1 << 16;

struct HashOfWord {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

}  // namespace

std::vector<PreTokenizerStep> gpt2_steps() {
  static const Splitter splitter(kGpt2Pattern, Splitter::Keep::kAll, "text.split", "");
  return {{.splitter = splitter}};
}

/// Encodes the words of one text.
class BpeTokenizer::Words final {
 public:
  Words(const BpeTokenizer& tokenizer, bool remembers, std::vector<int32_t>& ids)
      : tokenizer_(tokenizer), remembers_(remembers), ids_(ids) {}

  void add(std::string_view word) {
    if (const auto known = known_.find(word); known != known_.end()) {
      ids_.insert(ids_.end(), known->second.begin(), known->second.end());
      return;
    }
    const size_t begin = ids_.size();
    const auto missing = tokenizer_.model_.encode(word, tokenizer_.whole_words_, ids_);
    if (missing) {
      throw DataError("text.encode",
                      fmt::format("the vocabulary has no token for byte 0x{:02X}, which the text "
                                  "has. Train the tokenizer with all 256 bytes as its first tokens",
                                  *missing));
    }
    if (remembers_ && known_.size() < kMostRemembered) {
      known_.emplace(word, std::vector(ids_.begin() + static_cast<ptrdiff_t>(begin), ids_.end()));
    }
  }

 private:
  const BpeTokenizer& tokenizer_;
  bool remembers_;
  std::vector<int32_t>& ids_;
  std::unordered_map<std::string, std::vector<int32_t>, HashOfWord, std::equal_to<>> known_{};
};

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : TokenizerImpl(facts_of(parts)),
      model_(std::move(parts.tokens), std::move(parts.merges)),
      added_(std::move(parts.added)),
      steps_(std::move(parts.steps)),
      whole_words_(parts.whole_words),
      vocab_size_(static_cast<int64_t>(model_.tokens().size())) {
  for (const AddedToken& token : added_.tokens()) {
    const auto place = static_cast<size_t>(token.id);
    added_names_.resize(std::max(added_names_.size(), place + 1));
    added_names_[place] = &token.text;
    added_ids_.try_emplace(token.text, token.id);
    vocab_size_ = std::max<int64_t>(vocab_size_, token.id + 1);
  }
}

void BpeTokenizer::encode(std::string_view text,
                          SpecialText special,
                          std::vector<int32_t>& ids) const {
  Words words(*this, text.size() >= kRemembersFrom, ids);
  added_.split(text, special, [&](std::string_view part, std::optional<int32_t> id) {
    if (id) {
      ids.push_back(*id);
    } else {
      cut(part, 0, words);
    }
  });
}

void BpeTokenizer::cut(std::string_view piece, size_t step, Words& words) const {
  if (step == steps_.size()) {
    words.add(piece);
  } else if (!steps_[step].prefix_space) {
    steps_[step].splitter->split(piece,
                                 [&](std::string_view smaller) { cut(smaller, step + 1, words); });
  } else if (piece.starts_with(' ')) {
    cut(piece, step + 1, words);
  } else {
    cut(' ' + std::string(piece), step + 1, words);
  }
}

std::string BpeTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) {
    const auto place = static_cast<size_t>(id);
    if (place < added_names_.size() && added_names_[place] != nullptr) {
      text += *added_names_[place];
    } else {
      text += model_.tokens()[place].value();
    }
  }
  return text;
}

std::optional<int32_t> BpeTokenizer::id_of(std::string_view token) const {
  if (const auto added = added_ids_.find(token); added != added_ids_.end()) {
    return added->second;
  }
  return model_.id_of(token);
}

std::optional<std::string> BpeTokenizer::token(int32_t id) const {
  if (id < 0) {
    return std::nullopt;
  }
  const auto place = static_cast<size_t>(id);
  if (place < added_names_.size() && added_names_[place] != nullptr) {
    return *added_names_[place];
  }
  return place < model_.tokens().size() ? model_.tokens()[place] : std::nullopt;
}

void BpeTokenizer::save(const std::string& folder) const {
  const bool gpt2 = steps_.size() == 1 && steps_[0].splitter &&
                    steps_[0].splitter->pattern() == kGpt2Pattern &&
                    whole_words_ == BpeModel::WholeWords::kMerged;
  ARGOSY_CHECK(gpt2,
               "text.save",
               "vocab.json and merges.txt cannot say how this tokenizer splits text. Copy its "
               "tokenizer.json");
  write_gpt2_files(*this, folder);
}

}  // namespace argosy::text
