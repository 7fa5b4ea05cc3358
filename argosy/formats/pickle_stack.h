#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "argosy/formats/pickle_tree.h"

namespace argosy::formats {

/// The stack of a pickle's operations, with its marks, and the memo, which keeps values to be used
/// again. No operation reaches below the last mark.
/// Errors: PickleProblem when a value or a mark is missing, or the memo is full.
class PickleStack final {
 public:
  PickleStack(PickleTree& tree, int64_t memo_limit) : tree_(tree), memo_limit_(memo_limit) {}

  void push(PickleValue value) { values_.push_back(std::move(value)); }
  [[nodiscard]] const PickleValue& top() const;
  PickleValue pop();
  /// Takes the last `count` values, in their order.
  std::vector<PickleValue> pop(size_t count);
  void mark() { marks_.push_back(values_.size()); }
  /// Takes all values above the last mark, and removes the mark.
  std::vector<PickleValue> pop_to_mark();
  /// Drops the last mark if nothing lies above it, else the value on top.
  void drop();
  [[nodiscard]] bool empty() const { return values_.empty() && marks_.empty(); }

  /// Keeps the value on top in the memo at `place`.
  void put(uint64_t place);
  /// Keeps the value on top in the memo at the next place.
  void memoize() { put(static_cast<uint64_t>(memo_count_)); }
  [[nodiscard]] const PickleValue& get(uint64_t place) const;

 private:
  PickleTree& tree_;
  int64_t memo_limit_;
  std::vector<PickleValue> values_;
  std::vector<size_t> marks_;
  std::vector<std::optional<PickleValue>> memo_;
  int64_t memo_count_ = 0;
};

}  // namespace argosy::formats
