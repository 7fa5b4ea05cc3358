#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/formats/pickle.h"
#include "argosy/formats/pickle_node.h"

namespace argosy::formats {

/// The machine that a pickle is a program for: a stack of values, marks in it, and a memo. It knows
/// the operations that build values; the others, and every name but a few, are refused.
class Unpickler final {
 public:
  Unpickler(std::span<const uint8_t> bytes, const UnpickleOptions& options);
  /// What a pickle that failed has built may be deep or go in circles: takes it apart link by link,
  /// so that it goes without recursion and leaves nothing behind.
  ~Unpickler();
  Unpickler(const Unpickler&) = delete;
  Unpickler& operator=(const Unpickler&) = delete;

  [[nodiscard]] PickleValue run();
  [[nodiscard]] size_t consumed() const { return at_; }

 private:
  // What things cost, roughly, for the limit on memory.
  static constexpr uint64_t kNodeCost = 128;
  static constexpr uint64_t kItemCost = 2 * sizeof(PickleValue);
  static constexpr uint64_t kMemoCost = 2 * sizeof(std::optional<PickleValue>);

  // Each carries out `op` if it is one of its group; false: it is not.
  bool number(uint8_t op);
  bool text(uint8_t op);
  bool container(uint8_t op);
  bool fill(uint8_t op);
  bool tuple(uint8_t op);
  bool stack(uint8_t op);
  bool memo(uint8_t op);
  bool object(uint8_t op);

  // Input.
  std::span<const uint8_t> take(uint64_t size);
  uint64_t little_endian(size_t width);
  std::string_view take_text(size_t width_of_length);
  std::string_view line();
  void push_long(std::span<const uint8_t> digits);
  void push_text(PickleKind kind, std::string_view text);

  // Stack.
  void push(PickleValue value) { stack_.push_back(std::move(value)); }
  void push_new(PickleValue container);
  PickleValue pop();
  PickleValue& top();
  size_t mark() const;
  std::vector<PickleValue> pop_to_mark();
  void append(std::vector<PickleValue> values, PickleKind kind);
  void set_items(std::vector<PickleValue> values);
  std::vector<PickleEntry> to_entries(std::vector<PickleValue> values);
  void push_tuple(size_t size);
  void put(uint64_t index);
  void get(uint64_t index);
  void check_key(const PickleValue& key) const;

  // Names and calls.
  void push_global(std::string_view module, std::string_view name);
  void reduce();
  PickleValue call_known(int known, const std::vector<PickleValue>& args);
  PickleValue encode(const std::vector<PickleValue>& args);
  PickleValue ordered_dict(const std::vector<PickleValue>& args);
  PickleValue items_of(PickleKind kind, const std::vector<PickleValue>& args);
  PickleValue bytes_of(PickleKind kind, const std::vector<PickleValue>& args);
  void build();
  void push_persistent(const PickleValue& id);

  // The end.
  void measure_depths();
  void measure(PickleNode* root);
  void check_complete(const PickleValue& value);

  /// May this kind hold other values?
  static bool is_container(PickleKind kind);
  void keep(const PickleValue& container);
  void keep_if_container(const PickleValue& value);
  void charge(uint64_t bytes);
  [[noreturn]] void refuse(std::string_view module, std::string_view name) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::span<const uint8_t> bytes_;
  const UnpickleOptions& options_;
  size_t at_ = 0;     // next byte
  size_t op_at_ = 0;  // of the operation that is carried out
  int64_t memory_left_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::vector<std::optional<PickleValue>> memo_;
  int64_t memo_count_ = 0;
  std::vector<std::shared_ptr<PickleNode>> containers_;  // all that were made
  PickleValue empty_tuple_;
  bool finished_ = false;
};

}  // namespace argosy::formats
