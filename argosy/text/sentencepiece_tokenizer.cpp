#include "argosy/text/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/text.h"
#include "argosy/os/fd.h"
#include "argosy/text/utf8.h"

namespace argosy::text {
namespace {

constexpr const char* kPieces = "text.sentencepiece";
constexpr size_t kMostModelBytes = size_t{256} << 20;
constexpr std::string_view kSpace = "\xE2\x96\x81";  // stands for a space in pieces
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr float kUnknownPenalty = 10.0F;

std::string byte_piece(size_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

[[noreturn]] void refuse_model(const std::string& what, const std::string& path) {
  throw DataError(kPieces, what, {path});
}

TokenizerFacts facts_of(const SentencepieceModel& model, uint64_t digest) {
  const bool bpe = model.algorithm == SentencepieceModel::Algorithm::kBpe;
  TokenizerFacts facts{.kind = bpe ? "sentencepiece BPE" : "sentencepiece unigram",
                       .digest = digest};
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.type == SentencepieceModel::Type::kControl ||
        piece.type == SentencepieceModel::Type::kUnknown) {
      facts.special.push_back({id, piece.text});
    }
    if (piece.type != SentencepieceModel::Type::kControl) {
      continue;
    }
    const auto set = [&](const std::string& name, std::optional<int32_t>& role) {
      if (piece.text == name) {
        role = id;
      }
    };
    set(model.bos_piece, facts.begin_of_text);
    set(model.eos_piece, facts.end_of_text);
    set(model.pad_piece, facts.pad);
  }
  return facts;
}

}  // namespace

Tokenizer read_sentencepiece(const std::string& path) {
  const std::string bytes =
      os::read_file(path, kMostModelBytes).or_throw<DataError>(kPieces, DataPlace{path});
  Fingerprint fingerprint;
  fingerprint.add(bytes);
  return Tokenizer(std::make_shared<const SentencepieceTokenizer>(
      parse_sentencepiece_model(bytes, path), fingerprint.value(), path));
}

SentencepieceTokenizer::SentencepieceTokenizer(SentencepieceModel model,
                                               uint64_t digest,
                                               const std::string& path)
    : TokenizerImpl(facts_of(model, digest)),
      model_(std::move(model)),
      characters_(model_.character_map, path),
      least_score_(std::numeric_limits<float>::max()),
      most_score_(std::numeric_limits<float>::min()) {  // which is positive, as in sentencepiece
  const bool unigram = model_.algorithm == SentencepieceModel::Algorithm::kUnigram;
  if (!unigram && model_.algorithm != SentencepieceModel::Algorithm::kBpe) {
    refuse_model(
        "a model of words or characters is not read: expected BPE or unigram. Train one of these",
        path);
  }
  if (model_.space_as_suffix || model_.denormalizes) {
    refuse_model(
        "a model with treat_whitespace_as_suffix or a denormalizer is not read. Train it without",
        path);
  }
  std::optional<int32_t> unknown;
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const SentencepieceModel::Piece& piece = model_.pieces[i];
    const auto id = static_cast<int32_t>(i);
    const bool own = piece.type == Type::kNormal || piece.type == Type::kUserDefined ||
                     piece.type == Type::kUnused;
    if (!(own ? ids_ : others_).try_emplace(piece.text, id).second) {
      refuse_model(fmt::format("two pieces are \"{}\": expected one. Fetch the file again",
                               printable(piece.text)),
                   path);
    }
    if (piece.type == Type::kNormal) {
      least_score_ = std::min(least_score_, piece.score);
      most_score_ = std::max(most_score_, piece.score);
    }
    if (piece.type == Type::kUnknown) {
      unknown = id;
    }
    if (piece.type == Type::kUserDefined) {
      user_defined_.add(piece.text, id);
    }
    if (own && unigram) {
      pieces_.add(piece.text, id);
    }
  }
  if (!unknown) {
    refuse_model("expected a piece for what is unknown (\"<unk>\"), got none. Fetch the file again",
                 path);
  }
  unknown_ = *unknown;
  if (!model_.byte_fallback) {
    return;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto id = others_.find(byte_piece(byte));
    if (id == others_.end() || type_of(id->second) != Type::kByte) {
      refuse_model(
          fmt::format("expected a piece {}, as the model falls back to bytes. Fetch the file "
                      "again",
                      byte_piece(byte)),
          path);
    }
    byte_ids_.push_back(id->second);
  }
}

SentencepieceTokenizer::Type SentencepieceTokenizer::type_of(int32_t id) const {
  return model_.pieces[static_cast<size_t>(id)].type;
}

int32_t SentencepieceTokenizer::id_or_unknown(std::string_view piece) const {
  if (const auto other = others_.find(piece); other != others_.end()) {
    return other->second;
  }
  const auto own = ids_.find(piece);
  return own == ids_.end() ? unknown_ : own->second;
}

void SentencepieceTokenizer::append_normalized(std::string_view part, std::string& text) const {
  for (const char byte : part) {
    if (byte == ' ' && model_.escape_spaces) {
      text += kSpace;
    } else {
      text += byte;
    }
  }
}

std::string SentencepieceTokenizer::normalized(std::string_view text) const {
  /// What a beginning of the text becomes, and its bytes.
  const auto prefix = [&](std::string_view rest) -> CharacterMap::Match {
    if (const Trie::Match match = user_defined_.longest(rest); match.bytes > 0) {
      return {match.bytes, rest.substr(0, match.bytes)};
    }
    if (const CharacterMap::Match match = characters_.longest(rest); match.bytes > 0) {
      return match;
    }
    const size_t bytes = character_bytes(rest);
    return bytes > 0 ? CharacterMap::Match{bytes, rest.substr(0, bytes)}
                     : CharacterMap::Match{1, kReplacement};
  };
  const bool removes = model_.remove_extra_spaces;
  while (removes && !text.empty()) {
    const CharacterMap::Match match = prefix(text);
    if (match.replacement != " ") {
      break;
    }
    text.remove_prefix(match.bytes);
  }
  std::string result;
  if (text.empty()) {
    return result;
  }
  if (model_.dummy_prefix) {
    append_normalized(" ", result);
  }
  bool after_space = removes;
  while (!text.empty()) {
    auto [bytes, part] = prefix(text);
    text.remove_prefix(bytes);
    while (after_space && part.starts_with(' ')) {
      part.remove_prefix(1);
    }
    if (!part.empty()) {
      append_normalized(part, result);
      after_space = removes && part.ends_with(' ');
    }
  }
  const std::string_view space = model_.escape_spaces ? kSpace : std::string_view(" ");
  while (removes && result.ends_with(space)) {
    result.resize(result.size() - space.size());
  }
  return result;
}

/// A text while its pairs are merged.
class SentencepieceTokenizer::BpeWord final {
 public:
  BpeWord(const SentencepieceTokenizer& tokenizer, std::string_view text) : tokenizer_(tokenizer) {
    while (!text.empty()) {
      const Trie::Match fixed = tokenizer.user_defined_.longest(text);
      const size_t bytes = fixed.bytes > 0 ? fixed.bytes : promised_bytes(text);
      const auto at = static_cast<int32_t>(parts_.size());
      parts_.push_back({text.substr(0, bytes), at - 1, at + 1, fixed.bytes > 0});
      text.remove_prefix(bytes);
    }
    parts_.back().next = -1;
  }

  std::vector<Piece> merged() {
    for (size_t i = 1; i < parts_.size(); ++i) {
      offer(static_cast<int32_t>(i - 1), static_cast<int32_t>(i));
    }
    while (!queue_.empty()) {
      const Offer best = queue_.top();
      queue_.pop();
      Part& left = part(best.left);
      Part& right = part(best.right);
      // One of the two may have been merged with another since.
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != best.bytes) {
        continue;
      }
      left.text = {left.text.data(), best.bytes};
      left.next = right.next;
      if (right.next >= 0) {
        part(right.next).previous = best.left;
      }
      right.text = {};
      offer(left.previous, best.left);
      offer(best.left, left.next);
    }
    std::vector<Piece> pieces;
    for (int32_t at = 0; at >= 0; at = part(at).next) {
      append(part(at).text, pieces);
    }
    return pieces;
  }

 private:
  struct Part {
    std::string_view text;  // empty: merged into one before it
    int32_t previous;
    int32_t next;
    bool fixed;  // it is not merged
  };
  struct Offer {
    float score;
    int32_t left, right;
    size_t bytes;
    // The highest score first, then the leftmost.
    bool operator<(const Offer& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  Part& part(int32_t at) { return parts_[static_cast<size_t>(at)]; }

  void offer(int32_t left, int32_t right) {
    if (left < 0 || right < 0 || part(left).fixed || part(right).fixed) {
      return;
    }
    const size_t bytes = part(left).text.size() + part(right).text.size();
    const std::string_view both(part(left).text.data(), bytes);
    const auto id = tokenizer_.ids_.find(both);
    if (id == tokenizer_.ids_.end()) {
      return;
    }
    queue_.push(
        {tokenizer_.model_.pieces[static_cast<size_t>(id->second)].score, left, right, bytes});
    if (tokenizer_.type_of(id->second) == Type::kUnused) {
      unused_[both] = part(left).text.size();
    }
  }

  /// A piece that is not to be used falls apart again.
  void append(std::string_view text, std::vector<Piece>& pieces) const {
    const int32_t id = tokenizer_.id_or_unknown(text);
    const auto halves = unused_.find(text);
    if (tokenizer_.type_of(id) == Type::kUnused && halves != unused_.end()) {
      append(text.substr(0, halves->second), pieces);
      append(text.substr(halves->second), pieces);
    } else {
      pieces.push_back({text, id});
    }
  }

  const SentencepieceTokenizer& tokenizer_;
  std::vector<Part> parts_{};
  std::priority_queue<Offer> queue_{};
  std::unordered_map<std::string_view, size_t> unused_{};  // bytes of the left half
};

std::vector<SentencepieceTokenizer::Piece> SentencepieceTokenizer::by_bpe(
    std::string_view text) const {
  return BpeWord(*this, text).merged();
}

/// The pieces whose scores have the largest sum, by Viterbi's algorithm.
std::vector<SentencepieceTokenizer::Piece> SentencepieceTokenizer::by_unigram(
    std::string_view text) const {
  struct Best {
    float score = 0;
    int64_t begin = -1;  // of the last piece of the best way to here
    int32_t id = 0;
  };
  std::vector<Best> best(text.size() + 1);
  // In double where sentencepiece has double, so that near ties end alike.
  const auto offer = [&](size_t begin, size_t end, auto score, int32_t id) {
    const auto total = score + best[begin].score;
    if (best[end].begin < 0 || total > best[end].score) {
      best[end] = {static_cast<float>(total), static_cast<int64_t>(begin), id};
    }
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t character = promised_bytes(text.substr(begin));
    bool alone = false;  // the character is a piece by itself
    int32_t node = pieces_.next(Trie::kRoot, text[begin]);
    for (size_t end = begin + 1; node != Trie::kNone; ++end) {
      const int32_t id = pieces_.value(node);
      if (id != Trie::kNone && type_of(id) != Type::kUnused) {
        const auto bytes = static_cast<float>(end - begin);
        const double score = type_of(id) == Type::kUserDefined
                                 ? static_cast<double>(bytes * most_score_) - 0.1
                                 : model_.pieces[static_cast<size_t>(id)].score;
        offer(begin, end, score, id);
        alone = alone || end - begin == character;
      }
      node = end < text.size() ? pieces_.next(node, text[end]) : Trie::kNone;
    }
    if (!alone) {
      offer(begin, begin + character, least_score_ - kUnknownPenalty, unknown_);
    }
    begin += character;
  }
  std::vector<Piece> pieces;
  for (size_t end = text.size(); end > 0;) {
    const Best& last = best[end];
    const auto begin = static_cast<size_t>(last.begin);
    pieces.push_back({text.substr(begin, end - begin), last.id});
    end = begin;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

void SentencepieceTokenizer::encode(std::string_view text,
                                    SpecialText /*special*/,
                                    std::vector<int32_t>& ids) const {
  const std::string normal = normalized(text);
  if (normal.empty()) {
    return;
  }
  const bool bpe = model_.algorithm == SentencepieceModel::Algorithm::kBpe;
  bool after_unknown = false;  // unknown pieces that follow each other are one
  for (const Piece& piece : bpe ? by_bpe(normal) : by_unigram(normal)) {
    const bool unknown = piece.id == unknown_;
    if (unknown && model_.byte_fallback) {
      for (const char byte : piece.text) {
        ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
      }
    } else if (!unknown || !after_unknown) {
      ids.push_back(piece.id);
    }
    after_unknown = unknown;
  }
}

/// What a piece is in a text. Where `strip` says so it loses the mark of a space in front.
std::string SentencepieceTokenizer::surface(int32_t id, bool strip, bool& stripped) const {
  stripped = false;
  if (type_of(id) == Type::kControl) {
    return "";
  }
  if (type_of(id) == Type::kUnknown) {
    return model_.unknown_surface;
  }
  std::string_view piece = model_.pieces[static_cast<size_t>(id)].text;
  if (strip && (model_.dummy_prefix || model_.remove_extra_spaces) && piece.starts_with(kSpace)) {
    piece.remove_prefix(kSpace.size());
    stripped = !model_.remove_extra_spaces;
  }
  std::string text;
  while (!piece.empty()) {
    const bool space = piece.starts_with(kSpace);
    text += space ? ' ' : piece.front();
    piece.remove_prefix(space ? kSpace.size() : 1);
  }
  return text;
}

std::string SentencepieceTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  std::string bytes;  // of the byte pieces at hand
  const auto flush = [&] {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const size_t size = character_bytes(rest);
      text += size > 0 ? rest.substr(0, size) : kReplacement;
      rest.remove_prefix(std::max<size_t>(size, 1));
    }
    bytes.clear();
  };
  bool at_begin = true;
  bool stripped = false;
  for (const int32_t id : ids) {
    if (type_of(id) == Type::kByte) {
      const auto byte = std::find(byte_ids_.begin(), byte_ids_.end(), id);
      bytes += static_cast<char>(byte - byte_ids_.begin());
      continue;
    }
    flush();
    at_begin = at_begin && !stripped && text.empty();
    text += surface(id, at_begin, stripped);
  }
  flush();
  return text;
}

int64_t SentencepieceTokenizer::vocab_size() const {
  return static_cast<int64_t>(model_.pieces.size());
}

std::optional<int32_t> SentencepieceTokenizer::id_of(std::string_view token) const {
  const int32_t id = id_or_unknown(token);
  return model_.pieces[static_cast<size_t>(id)].text == token ? std::optional(id) : std::nullopt;
}

std::optional<std::string> SentencepieceTokenizer::token(int32_t id) const {
  return id >= 0 && id < vocab_size() ? std::optional(model_.pieces[static_cast<size_t>(id)].text)
                                      : std::nullopt;
}

}  // namespace argosy::text
