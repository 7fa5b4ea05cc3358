#pragma once

#include <any>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace argosy::formats {

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,  ///< Python's str, as UTF-8
  kBytes,   ///< also Python 2's str
  kByteArray,
  kList,
  kTuple,
  kDict,
  kOrderedDict,  ///< collections.OrderedDict
  kSet,
  kFrozenSet,
  kArray,       ///< numpy.ndarray
  kGlobal,      ///< a function or class by its name, nothing more
  kCall,        ///< the result of a call of one
  kPersistent,  ///< an object outside the pickle, by its id
  kOpaque,      ///< anything that a handler made
};

/// Returns "a list", "an int", for messages.
[[nodiscard]] std::string_view kind_name(PickleKind kind);

enum class PickleType : uint8_t { kBool, kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF32, kF64 };

[[nodiscard]] int64_t element_bytes(PickleType type);
/// Returns numpy's code without the byte order: "u1", "f4".
[[nodiscard]] std::string_view type_code(PickleType type);

/// A numpy array. It is row-major and in this machine's byte order, whatever the file had.
struct PickleArray {
  PickleType type = PickleType::kU8;
  std::vector<int64_t> shape{};      ///< {} is a single number
  std::span<const uint8_t> bytes{};  ///< product of shape × element_bytes(type); of any alignment
  std::shared_ptr<const void> owner{};  ///< of bytes

  /// Makes an array. Errors: UsageError when bytes and shape do not fit.
  static PickleArray of(PickleType type, std::vector<int64_t> shape, std::vector<uint8_t> bytes);
};

struct PickleEntry;
struct PickleGlobal;
struct PickleCall;
struct PickleNode;

/// A value of a pickle: a tree whose branches may be shared.
///
///     const PickleValue batch = unpickle(bytes, {.path = path});
///     const PickleArray& data = batch.at("data").as_array();
///     for (const PickleValue& label : batch.at("labels").items()) use(label.as_int());
///
/// Copies are handles of one value and cost a pointer. A value cannot change once it is built, so
/// several threads may read it.
/// Errors: the accessors throw DataError when the value is of another kind; `what` names it there
/// ("labels": expected a list, got an int). Code that knows the file catches the error and adds it.
class PickleValue final {
 public:
  PickleValue() = default;  ///< None
  // Implicit, so that lists of values read as in Python.
  // NOLINTBEGIN(google-explicit-constructor)
  template <std::same_as<bool> T>
  PickleValue(T value) : state_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, uint64_t>) PickleValue(T value)
      : state_(static_cast<int64_t>(value)) {}
  PickleValue(uint64_t value);
  PickleValue(double value) : state_(value) {}
  PickleValue(std::string text);
  PickleValue(const char* text) : PickleValue(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] static PickleValue bytes(std::string bytes);
  [[nodiscard]] static PickleValue byte_array(std::string bytes);
  [[nodiscard]] static PickleValue list(std::vector<PickleValue> items);
  [[nodiscard]] static PickleValue tuple(std::vector<PickleValue> items);
  [[nodiscard]] static PickleValue set(std::vector<PickleValue> items);
  [[nodiscard]] static PickleValue frozen_set(std::vector<PickleValue> items);
  [[nodiscard]] static PickleValue dict(std::vector<PickleEntry> entries);
  /// `attributes` is None, or a dict of what the instance holds beside its entries (torch keeps
  /// `_metadata` there).
  [[nodiscard]] static PickleValue ordered_dict(std::vector<PickleEntry> entries,
                                                PickleValue attributes = {});
  [[nodiscard]] static PickleValue array(PickleArray array);
  [[nodiscard]] static PickleValue global(std::string module, std::string name);
  [[nodiscard]] static PickleValue call(PickleValue callable, std::vector<PickleValue> args);
  [[nodiscard]] static PickleValue persistent(PickleValue id);
  /// Holds anything that a handler wants to find again in the tree. It should be small and hold no
  /// deep trees.
  [[nodiscard]] static PickleValue opaque(std::any value);

  [[nodiscard]] PickleKind kind() const;
  [[nodiscard]] bool is(PickleKind kind) const { return this->kind() == kind; }
  [[nodiscard]] bool is_none() const { return is(PickleKind::kNone); }
  /// Returns "str 'abc'", "list of 3" or "numpy array u1 of 600 x 3072", for messages; at most a
  /// line.
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] bool as_bool(std::string_view what = {}) const;
  [[nodiscard]] int64_t as_int(std::string_view what = {}) const;
  [[nodiscard]] double as_float(std::string_view what = {}) const;  ///< takes an int too
  [[nodiscard]] const std::string& as_string(std::string_view what = {}) const;
  /// Returns the content of bytes or bytearray.
  [[nodiscard]] std::span<const uint8_t> as_bytes(std::string_view what = {}) const;
  /// Returns a str's UTF-8 or the content of bytes, for code that takes files of Python 2 and 3
  /// alike.
  [[nodiscard]] std::string_view as_text(std::string_view what = {}) const;
  /// Returns the items of a list, tuple, set or frozenset. A set's elements are in the order of the
  /// file.
  [[nodiscard]] std::span<const PickleValue> items(std::string_view what = {}) const;
  /// Returns the entries of a dict or OrderedDict, in order. A key that the file sets twice stands
  /// twice.
  [[nodiscard]] std::span<const PickleEntry> entries(std::string_view what = {}) const;
  /// Returns the value of a key that is this str or these bytes; the last one that was set. Null:
  /// there is none. Cost: looks at every entry.
  [[nodiscard]] const PickleValue* find(std::string_view key) const;
  /// Returns the same as find(). Errors: DataError when there is no such key, or this is not a
  /// dict.
  [[nodiscard]] const PickleValue& at(std::string_view key) const;
  /// Returns the attributes of an OrderedDict: None or a dict.
  [[nodiscard]] const PickleValue& attributes() const;
  [[nodiscard]] const PickleArray& as_array(std::string_view what = {}) const;
  [[nodiscard]] const PickleGlobal& as_global(std::string_view what = {}) const;
  [[nodiscard]] const PickleCall& as_call(std::string_view what = {}) const;
  [[nodiscard]] const PickleValue& persistent_id(std::string_view what = {}) const;
  /// Returns the T that opaque() was given. Null: it is something else.
  template <typename T>
  [[nodiscard]] const T* if_opaque() const {
    const std::any* value = opaque_or_null();
    return value == nullptr ? nullptr : std::any_cast<T>(value);
  }

  /// True if both are handles of one value. (Numbers, bools and None are never the same one.)
  [[nodiscard]] bool same(const PickleValue& other) const;

 private:
  friend struct PickleNode;
  explicit PickleValue(std::shared_ptr<PickleNode> node) : state_(std::move(node)) {}
  [[nodiscard]] const std::any* opaque_or_null() const;

  std::variant<std::monostate, bool, int64_t, double, std::shared_ptr<PickleNode>> state_;
};

struct PickleEntry {
  PickleValue key{};
  PickleValue value{};
};

/// `module.name`, e.g. torch._utils._rebuild_tensor_v2.
struct PickleGlobal {
  std::string module{};
  std::string name{};
};

/// callable(*args).
struct PickleCall {
  PickleValue callable{};
  std::vector<PickleValue> args{};
};

}  // namespace argosy::formats
