#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/rpc/memory.h"

namespace argosy::rpc {

namespace wire {
class List;
class Value;
}  // namespace wire

/// The values of one message, with the memory that travels beside them. Values know their kind on
/// the wire, so a receiver that expects another one is told what came.
class Parcel final {
 public:
  Parcel();
  ~Parcel();
  Parcel(Parcel&&) noexcept;
  Parcel& operator=(Parcel&&) noexcept;
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  /// Of values: Protocol Buffers count the bytes of a message in 31 bits, and it has other parts
  /// too.
  static constexpr size_t kMostBytes = 2'000'000'000;
  /// Errors: UsageError when the values take more bytes than these, or than kMostBytes.
  void check_size(size_t most = kMostBytes) const;

  [[nodiscard]] wire::List& values() { return *values_; }
  [[nodiscard]] const wire::List& values() const { return *values_; }
  [[nodiscard]] std::vector<Memory>& memories() { return memories_; }
  [[nodiscard]] const std::vector<Memory>& memories() const { return memories_; }

 private:
  std::unique_ptr<wire::List> values_;
  std::vector<Memory> memories_;
};

/// Puts values into a parcel, one after the other. Codec<T> says how a type is put.
class Writer final {
 public:
  explicit Writer(Parcel& parcel);

  void truth(bool value);
  void whole(int64_t value);
  void natural(uint64_t value);
  void real(double value);
  void text(std::string_view value);
  /// `type`: "f32", "i64", …
  void numbers(std::string_view type, std::span<const std::byte> data);
  void memory(Memory value);
  /// The values until end_list() are one list.
  void begin_list();
  void end_list();

 private:
  wire::Value& next();

  Parcel& parcel_;
  std::vector<wire::List*> lists_;
};

/// Takes values out of a parcel in the order in which they were put.
/// Errors: UsageError saying what was expected and what came. A receiver trusts no sender: nothing
/// is allocated for a length that is only said.
class Reader final {
 public:
  explicit Reader(const Parcel& parcel);

  [[nodiscard]] bool truth();
  [[nodiscard]] int64_t whole();
  [[nodiscard]] uint64_t natural();
  /// Takes whole numbers too that a double holds exactly.
  [[nodiscard]] double real();
  [[nodiscard]] std::string_view text();
  /// Returns the bytes of a vector of `type`, a whole number of `element` bytes.
  [[nodiscard]] std::string_view numbers(std::string_view type, size_t element);
  [[nodiscard]] Memory memory();
  /// Returns how many values the list has.
  [[nodiscard]] size_t begin_list();
  /// Errors: UsageError when values of the list are left.
  void end_list();

  /// How many values of the list, or of the parcel, have not been taken.
  [[nodiscard]] size_t left() const;
  /// Errors: UsageError for a number that is not from `low` to `high`.
  static void out_of_range(const std::string& value, const std::string& type);

 private:
  struct Place {
    const wire::List* list;
    int next;
  };
  const wire::Value& next(std::string_view expected);

  const Parcel& parcel_;
  std::vector<Place> places_;
};

}  // namespace argosy::rpc
