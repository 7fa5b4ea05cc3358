#include "argosy/text/train_bpe.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/text/added_tokens.h"
#include "argosy/text/bpe_tokenizer.h"
#include "argosy/text/byte_alphabet.h"

namespace argosy::text {
namespace {

constexpr const char* kTrains = "text.train_bpe";
constexpr int64_t kBytes = 256;

using WordCounts = std::unordered_map<std::string_view, int64_t>;

/// The bytes in the order of the characters that stand for them, which is GPT-2's.
std::vector<unsigned char> bytes_in_order() {
  std::vector<unsigned char> bytes(kBytes);
  std::iota(bytes.begin(), bytes.end(), 0);
  std::sort(bytes.begin(), bytes.end(), [](unsigned char a, unsigned char b) {
    return byte_code_point(a) < byte_code_point(b);
  });
  return bytes;
}

WordCounts count_words(std::string_view text, const std::vector<std::string>& special_tokens) {
  std::vector<AddedToken> special;
  for (const std::string& name : special_tokens) {
    special.push_back({.text = name, .special = true});
  }
  const Splitter splitter = *gpt2_steps().front().splitter;
  WordCounts counts;
  AddedTokens(std::move(special))
      .split(text, SpecialText::kIds, [&](std::string_view part, std::optional<int32_t> id) {
        if (!id) {
          splitter.split(part, [&](std::string_view word) { ++counts[word]; });
        }
      });
  return counts;
}

/// Finds the merges for words with their counts.
class BpeTrainer final {
 public:
  BpeTrainer(const WordCounts& counts, const TrainBpeOptions& options) : options_(options) {
    std::vector<int32_t> id_of_byte(kBytes);
    for (const unsigned char byte : bytes_in_order()) {
      id_of_byte[byte] = static_cast<int32_t>(tokens_.size());
      add_token(std::string(1, static_cast<char>(byte)));
    }
    for (const auto& [text, count] : counts) {
      if (text.size() < 2) {
        continue;  // has no pair
      }
      Word word{.count = count};
      for (const char byte : text) {
        word.ids.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
      }
      words_.push_back(std::move(word));
    }
  }

  BpeParts train() {
    for (size_t i = 0; i < words_.size(); ++i) {
      count_pairs(words_[i], 1);
      note_word(i, nullptr);
    }
    for (const auto& [key, pair] : pairs_) {
      queue_.push({pair.count, key});
    }
    const auto most = static_cast<size_t>(options_.vocab_size) - options_.special_tokens.size();
    while (tokens_.size() < most && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t now = pairs_[best.key].count;
      if (now != best.count) {  // merges of other pairs took some away
        if (now > 0) {
          queue_.push({now, best.key});
        }
        continue;
      }
      if (now < std::max<int64_t>(options_.min_frequency, 1)) {
        break;
      }
      merge(best.key);
    }
    return result();
  }

 private:
  struct Word {
    std::vector<int32_t> ids{};
    int64_t count = 0;
  };
  struct Pair {
    int64_t count = 0;
    std::vector<size_t> words{};  // those that have it, or had it
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    // The highest count first, then the lowest key: left id, right id.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  int32_t add_token(const std::string& text) {
    const auto [id, added] = ids_.try_emplace(text, static_cast<int32_t>(tokens_.size()));
    if (added) {
      tokens_.emplace_back(text);
    }
    return id->second;
  }

  void count_pairs(const Word& word, int64_t sign) {
    for (size_t i = 0; i + 1 < word.ids.size(); ++i) {
      pairs_[key_of(word.ids[i], word.ids[i + 1])].count += sign * word.count;
    }
  }

  /// Notes in pairs that they have this word: in all, or in those of `*token`, which it lists.
  void note_word(size_t number, const int32_t* token, std::vector<uint64_t>* changed = nullptr) {
    const std::vector<int32_t>& ids = words_[number].ids;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      if (token != nullptr && ids[i] != *token && ids[i + 1] != *token) {
        continue;
      }
      const uint64_t key = key_of(ids[i], ids[i + 1]);
      std::vector<size_t>& words = pairs_[key].words;
      if (words.empty() || words.back() != number) {
        words.push_back(number);
      }
      if (changed != nullptr) {
        changed->push_back(key);
      }
    }
  }

  void merge(uint64_t key) {
    const auto left = static_cast<int32_t>(key >> 32);
    const auto right = static_cast<int32_t>(key & 0xFFFFFFFFU);
    const int32_t token =
        add_token(*tokens_[static_cast<size_t>(left)] + *tokens_[static_cast<size_t>(right)]);
    merges_.push_back({left, right, token});
    std::vector<size_t> having = std::move(pairs_[key].words);
    pairs_[key].words.clear();
    std::sort(having.begin(), having.end());
    having.erase(std::unique(having.begin(), having.end()), having.end());
    std::vector<uint64_t> changed;
    for (const size_t number : having) {
      Word& word = words_[number];
      count_pairs(word, -1);
      join(word.ids, left, right, token);
      count_pairs(word, 1);
      note_word(number, &token, &changed);
    }
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const uint64_t pair : changed) {
      queue_.push({pairs_[pair].count, pair});
    }
  }

  static void join(std::vector<int32_t>& ids, int32_t left, int32_t right, int32_t token) {
    size_t to = 0;
    for (size_t from = 0; from < ids.size(); ++from) {
      const bool both = from + 1 < ids.size() && ids[from] == left && ids[from + 1] == right;
      ids[to++] = both ? token : ids[from];
      from += both ? 1 : 0;
    }
    ids.resize(to);
  }

  BpeParts result() {
    BpeParts parts{
        .tokens = std::move(tokens_), .merges = std::move(merges_), .steps = gpt2_steps()};
    for (const std::string& name : options_.special_tokens) {
      const auto id = static_cast<int32_t>(parts.tokens.size());
      parts.tokens.emplace_back(name);
      parts.added.push_back({.text = name, .id = id, .special = true});
    }
    return parts;
  }

  const TrainBpeOptions& options_;
  BpeModel::Tokens tokens_{};
  std::unordered_map<std::string, int32_t> ids_{};  // of tokens_
  std::vector<BpeMerge> merges_{};
  std::vector<Word> words_{};
  std::unordered_map<uint64_t, Pair> pairs_{};
  std::priority_queue<Candidate> queue_{};
};

void check(const TrainBpeOptions& options) {
  const auto special = static_cast<int64_t>(options.special_tokens.size());
  ARGOSY_CHECK(options.vocab_size >= kBytes + special && options.vocab_size < (1 << 24),
               kTrains,
               "vocab_size must be from {} (256 bytes and {} special tokens) to 2^24, got {}",
               kBytes + special,
               special,
               options.vocab_size);
  ARGOSY_CHECK(options.min_frequency >= 0,
               kTrains,
               "min_frequency must not be negative, got {}",
               options.min_frequency);
  std::set<std::string_view> names;
  for (const std::string& name : options.special_tokens) {
    const bool twice = !names.insert(name).second;
    ARGOSY_CHECK(name.size() > 1 && !twice,
                 kTrains,
                 "special_tokens: expected different names of at least 2 bytes, got \"{}\"{}",
                 name,
                 twice ? " twice" : "");
  }
}

}  // namespace

Tokenizer train_bpe(std::string_view text, const TrainBpeOptions& options) {
  check(options);
  BpeTrainer trainer(count_words(text, options.special_tokens), options);
  return Tokenizer(std::make_shared<const BpeTokenizer>(trainer.train()));
}

}  // namespace argosy::text
