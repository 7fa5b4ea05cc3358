#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// Makes and fills the values of a pickle while it is read, counts the memory that they take, and
/// checks at the end that they form a tree.
/// Errors: PickleProblem.
class PickleTree final {
 public:
  // Rough costs for charge().
  static constexpr uint64_t kNodeCost = 128;
  static constexpr uint64_t kItemCost = 2 * sizeof(PickleValue);

  struct Limits {
    size_t size = 0;           ///< bytes of the pickle
    int64_t memory_bytes = 0;  ///< UnpickleOptions::memory_bytes
    int32_t depth = 0;         ///< UnpickleOptions::depth
  };
  explicit PickleTree(const Limits& limits);
  /// Takes everything apart link by link. A pickle that failed may have built something deep or
  /// circular, and this needs no recursion and leaves nothing behind.
  ~PickleTree();
  PickleTree(const PickleTree&) = delete;
  PickleTree& operator=(const PickleTree&) = delete;

  /// Counts `bytes` of memory. Errors: the values take more than they may.
  void charge(uint64_t bytes);
  /// Registers a new value. Call it once for every value that may hold others.
  PickleValue keep(PickleValue value);
  /// Makes a str, bytes or bytearray. Errors: a str that is not UTF-8.
  PickleValue text(PickleKind kind, std::string_view content);
  PickleValue tuple(std::vector<PickleValue> items);
  /// Appends to a list, set or frozenset. Errors: `target` is not of `kind`, or a set cannot hold
  /// an item.
  void append(const PickleValue& target, PickleKind kind, std::vector<PickleValue> items);
  /// Adds keys and values, which come in turn, to a dict or OrderedDict.
  void set_items(const PickleValue& target, std::vector<PickleValue> values);

  /// Ends the reading with the result `value`. Errors: a value contains itself or lies too deep, or
  /// the result holds something half-built.
  void finish(const PickleValue& value);

 private:
  void measure(PickleNode* root) const;
  void check_complete(const PickleValue& value) const;

  Limits limits_;
  int64_t memory_left_;
  std::vector<std::shared_ptr<PickleNode>> containers_;  // all containers that were made
  bool finished_ = false;
};

}  // namespace argosy::formats
