#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// The values of a pickle while it is read: makes and fills them, counts the memory that they take,
/// and judges at the end whether they are a tree.
/// Errors: PickleProblem.
class PickleTree final {
 public:
  // What things cost, roughly, for charge().
  static constexpr uint64_t kNodeCost = 128;
  static constexpr uint64_t kItemCost = 2 * sizeof(PickleValue);

  struct Limits {
    size_t size = 0;           ///< bytes of the pickle
    int64_t memory_bytes = 0;  ///< UnpickleOptions::memory_bytes
    int32_t depth = 0;         ///< UnpickleOptions::depth
  };
  explicit PickleTree(const Limits& limits);
  /// What a pickle that failed has built may be deep or go in circles: takes it apart link by link,
  /// so that it goes without recursion and leaves nothing behind.
  ~PickleTree();
  PickleTree(const PickleTree&) = delete;
  PickleTree& operator=(const PickleTree&) = delete;

  /// Errors: the values take more memory than they may.
  void charge(uint64_t bytes);
  /// Every value that may hold others passes here once, when it is made.
  PickleValue keep(PickleValue value);
  /// A str, bytes or bytearray. Errors: a str that is not UTF-8.
  PickleValue text(PickleKind kind, std::string_view content);
  PickleValue tuple(std::vector<PickleValue> items);
  /// Appends to a list, set or frozenset. Errors: `target` is not of `kind`; items that a set
  /// cannot hold.
  void append(const PickleValue& target, PickleKind kind, std::vector<PickleValue> items);
  /// Adds keys and values, which come in turn, to a dict or OrderedDict.
  void set_items(const PickleValue& target, std::vector<PickleValue> values);

  /// Ends the reading: `value` is the result. Errors: a value that holds itself, or lies too deep;
  /// a result with something half-built in it.
  void finish(const PickleValue& value);

 private:
  void measure(PickleNode* root) const;
  void check_complete(const PickleValue& value) const;

  Limits limits_;
  int64_t memory_left_;
  std::vector<std::shared_ptr<PickleNode>> containers_;  // all that were made
  bool finished_ = false;
};

}  // namespace argosy::formats
