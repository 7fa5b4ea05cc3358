#include "argosy/text/bpe_model.h"

#include <queue>

namespace argosy::text {
namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

BpeModel::BpeModel(Tokens tokens, std::vector<BpeMerge> merges)
    : tokens_(std::move(tokens)), merges_(std::move(merges)) {
  bytes_.fill(-1);
  ids_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (tokens_[i] && ids_.try_emplace(*tokens_[i], id).second && tokens_[i]->size() == 1) {
      bytes_[static_cast<unsigned char>(tokens_[i]->front())] = id;
    }
  }
  steps_.reserve(merges_.size());
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const BpeMerge& merge = merges_[rank];
    steps_.try_emplace(key_of(merge.left, merge.right),
                       Step{static_cast<int32_t>(rank), merge.result});
  }
}

/// A word while its pairs are merged: a list of tokens, and a queue of the merges that it allows.
class BpeModel::Word final {
 public:
  explicit Word(const BpeModel& model) : model_(model) {}

  void append(int32_t id) {
    const auto at = static_cast<int32_t>(parts_.size());
    parts_.push_back({id, at - 1, at + 1});
  }

  void merge_all() {
    parts_.back().next = -1;
    for (size_t i = 0; i + 1 < parts_.size(); ++i) {
      offer(static_cast<int32_t>(i));
    }
    while (!queue_.empty()) {
      const Offer best = queue_.top();
      queue_.pop();
      Part& left = part(best.at);
      // One of the two may have been merged with another token since.
      if (left.id != best.left || left.next < 0 || part(left.next).id != best.right) {
        continue;
      }
      Part& right = part(left.next);
      left.id = best.result;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) {
        part(left.next).previous = best.at;
        offer(best.at);
      }
      if (left.previous >= 0) {
        offer(left.previous);
      }
    }
  }

  void append_to(std::vector<int32_t>& ids) const {
    for (int32_t at = 0; at >= 0; at = parts_[static_cast<size_t>(at)].next) {
      ids.push_back(parts_[static_cast<size_t>(at)].id);
    }
  }

 private:
  struct Part {
    int32_t id;  // -1: merged into the one before it
    int32_t previous;
    int32_t next;
  };
  struct Offer {
    int32_t rank, at, left, right, result;
    // The lowest rank first, then the leftmost.
    bool operator<(const Offer& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  Part& part(int32_t at) { return parts_[static_cast<size_t>(at)]; }

  void offer(int32_t at) {
    const int32_t left = part(at).id;
    const int32_t right = part(part(at).next).id;
    const auto step = model_.steps_.find(key_of(left, right));
    if (step != model_.steps_.end()) {
      queue_.push({step->second.rank, at, left, right, step->second.result});
    }
  }

  const BpeModel& model_;
  std::vector<Part> parts_{};
  std::priority_queue<Offer> queue_{};
};

std::optional<unsigned char> BpeModel::encode(std::string_view word,
                                              WholeWords whole_words,
                                              std::vector<int32_t>& ids) const {
  if (word.empty()) {
    return std::nullopt;
  }
  if (whole_words == WholeWords::kFirst) {
    if (const std::optional<int32_t> whole = id_of(word)) {
      ids.push_back(*whole);
      return std::nullopt;
    }
  }
  Word parts(*this);
  for (const char byte : word) {
    const int32_t id = bytes_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      return static_cast<unsigned char>(byte);
    }
    parts.append(id);
  }
  parts.merge_all();
  parts.append_to(ids);
  return std::nullopt;
}

std::optional<int32_t> BpeModel::id_of(std::string_view token) const {
  const auto id = ids_.find(token);
  return id == ids_.end() ? std::nullopt : std::optional(id->second);
}

}  // namespace argosy::text
