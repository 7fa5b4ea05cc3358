#include "argosy/formats/pickle_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/formats/pickle_node.h"
#include "argosy/formats/shown_name.h"

namespace argosy::formats {
namespace {

[[noreturn]] void fail_kind(const PickleValue& value,
                            std::string_view expected,
                            std::string_view what) {
  throw DataError("formats.pickle",
                  fmt::format("{}expected {}, got {}",
                              what.empty() ? std::string() : fmt::format("\"{}\": ", what),
                              expected,
                              value.describe()));
}

void check_kind(const PickleValue& value, PickleKind kind, std::string_view what) {
  if (!value.is(kind)) {
    fail_kind(value, kind_name(kind), what);
  }
}

bool is_text(PickleKind kind) {
  return kind == PickleKind::kString || kind == PickleKind::kBytes ||
         kind == PickleKind::kByteArray;
}

bool is_dict(PickleKind kind) {
  return kind == PickleKind::kDict || kind == PickleKind::kOrderedDict;
}

bool is_items(PickleKind kind) {
  return kind == PickleKind::kList || kind == PickleKind::kTuple || kind == PickleKind::kSet ||
         kind == PickleKind::kFrozenSet;
}

std::string describe_array(const PickleArray& array) {
  return fmt::format("numpy array {} of {}",
                     type_code(array.type),
                     array.shape.empty() ? std::string("no dimensions")
                                         : fmt::format("{}", fmt::join(array.shape, " x ")));
}

template <typename Node, typename... Args>
PickleValue make(Args&&... args) {
  return PickleNode::wrap(std::make_shared<Node>(std::forward<Args>(args)...));
}

}  // namespace

std::string_view kind_name(PickleKind kind) {
  switch (kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return "a bool";
    case PickleKind::kInt:
      return "an int";
    case PickleKind::kFloat:
      return "a float";
    case PickleKind::kString:
      return "a str";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kByteArray:
      return "a bytearray";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kDict:
      return "a dict";
    case PickleKind::kOrderedDict:
      return "an OrderedDict";
    case PickleKind::kSet:
      return "a set";
    case PickleKind::kFrozenSet:
      return "a frozenset";
    case PickleKind::kArray:
      return "a numpy array";
    case PickleKind::kGlobal:
      return "a global";
    case PickleKind::kCall:
      return "a call";
    case PickleKind::kPersistent:
      return "a persistent object";
    case PickleKind::kOpaque:
      return "an object";
  }
  return "an object";
}

int64_t element_bytes(PickleType type) {
  switch (type) {
    case PickleType::kBool:
    case PickleType::kU8:
    case PickleType::kI8:
      return 1;
    case PickleType::kU16:
    case PickleType::kI16:
      return 2;
    case PickleType::kU32:
    case PickleType::kI32:
    case PickleType::kF32:
      return 4;
    case PickleType::kU64:
    case PickleType::kI64:
    case PickleType::kF64:
      return 8;
  }
  return 1;
}

std::string_view type_code(PickleType type) {
  constexpr std::string_view kCodes[] = {
      "b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"};
  return kCodes[static_cast<size_t>(type)];
}

PickleArray PickleArray::of(PickleType type,
                            std::vector<int64_t> shape,
                            std::vector<uint8_t> bytes) {
  int64_t expected = element_bytes(type);
  bool overflow = false;
  for (const int64_t dim : shape) {
    overflow = overflow || dim < 0 || __builtin_mul_overflow(expected, dim, &expected);
  }
  ARGOSY_CHECK(!overflow && expected == static_cast<int64_t>(bytes.size()),
               "formats.pickle",
               "an array of {} {} needs {} bytes, got {}",
               fmt::join(shape, " x "),
               type_code(type),
               expected,
               bytes.size());
  auto owner = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  return {type, std::move(shape), *owner, owner};
}

PickleValue::PickleValue(uint64_t value) : state_(static_cast<int64_t>(value)) {
  ARGOSY_CHECK(value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
               "formats.pickle",
               "{} is more than 64 bits with a sign hold",
               value);
}

PickleValue::PickleValue(std::string text)
    : PickleValue(make<TextNode>(PickleKind::kString, std::move(text))) {}

PickleValue PickleValue::bytes(std::string bytes) {
  return make<TextNode>(PickleKind::kBytes, std::move(bytes));
}

PickleValue PickleValue::byte_array(std::string bytes) {
  return make<TextNode>(PickleKind::kByteArray, std::move(bytes));
}

PickleValue PickleValue::list(std::vector<PickleValue> items) {
  return make<ItemsNode>(PickleKind::kList, std::move(items));
}

PickleValue PickleValue::tuple(std::vector<PickleValue> items) {
  return make<ItemsNode>(PickleKind::kTuple, std::move(items));
}

PickleValue PickleValue::set(std::vector<PickleValue> items) {
  return make<ItemsNode>(PickleKind::kSet, std::move(items));
}

PickleValue PickleValue::frozen_set(std::vector<PickleValue> items) {
  return make<ItemsNode>(PickleKind::kFrozenSet, std::move(items));
}

PickleValue PickleValue::dict(std::vector<PickleEntry> entries) {
  return make<DictNode>(PickleKind::kDict, std::move(entries));
}

PickleValue PickleValue::ordered_dict(std::vector<PickleEntry> entries, PickleValue attributes) {
  ARGOSY_CHECK(attributes.is_none() || is_dict(attributes.kind()),
               "formats.pickle",
               "attributes must be a dict or None, got {}",
               attributes.describe());
  PickleValue value = make<DictNode>(PickleKind::kOrderedDict, std::move(entries));
  PickleNode::as<DictNode>(value).attributes = std::move(attributes);
  return value;
}

PickleValue PickleValue::array(PickleArray array) {
  return make<ArrayNode>(std::move(array));
}

PickleValue PickleValue::global(std::string module, std::string name) {
  return make<GlobalNode>(PickleGlobal{std::move(module), std::move(name)});
}

PickleValue PickleValue::call(PickleValue callable, std::vector<PickleValue> args) {
  return make<CallNode>(PickleCall{std::move(callable), std::move(args)});
}

PickleValue PickleValue::persistent(PickleValue id) {
  return make<PersistentNode>(std::move(id));
}

PickleValue PickleValue::opaque(std::any value) {
  return make<OpaqueNode>(std::move(value));
}

PickleKind PickleValue::kind() const {
  constexpr PickleKind kPlain[] = {
      PickleKind::kNone, PickleKind::kBool, PickleKind::kInt, PickleKind::kFloat};
  const PickleNode* node = PickleNode::of(*this);
  return node == nullptr ? kPlain[state_.index()] : node->kind;
}

std::string PickleValue::describe() const {
  switch (kind()) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return as_bool() ? "True" : "False";
    case PickleKind::kInt:
      return fmt::format("int {}", as_int());
    case PickleKind::kFloat:
      return fmt::format("float {}", as_float());
    case PickleKind::kString:
      return fmt::format("str '{}'", shown_name(as_string()));
    case PickleKind::kBytes:
      return fmt::format("bytes of {}", as_bytes().size());
    case PickleKind::kByteArray:
      return fmt::format("bytearray of {}", as_bytes().size());
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet:
    case PickleKind::kFrozenSet: {
      const std::string_view name = kind_name(kind());
      return fmt::format("{} of {}", name.substr(name.find(' ') + 1), items().size());
    }
    case PickleKind::kDict:
      return fmt::format("dict of {}", entries().size());
    case PickleKind::kOrderedDict:
      return fmt::format("OrderedDict of {}", entries().size());
    case PickleKind::kArray:
      return describe_array(as_array());
    case PickleKind::kGlobal:
      return fmt::format(
          "global {}.{}", shown_name(as_global().module), shown_name(as_global().name));
    case PickleKind::kCall: {
      const PickleValue& callable = as_call().callable;
      return callable.is(PickleKind::kGlobal) ? "call of " + callable.describe() : "call";
    }
    case PickleKind::kPersistent:
      return "persistent object";
    case PickleKind::kOpaque:
      return "object of a handler";
  }
  return "object";
}

bool PickleValue::as_bool(std::string_view what) const {
  check_kind(*this, PickleKind::kBool, what);
  return std::get<bool>(state_);
}

int64_t PickleValue::as_int(std::string_view what) const {
  check_kind(*this, PickleKind::kInt, what);
  return std::get<int64_t>(state_);
}

double PickleValue::as_float(std::string_view what) const {
  if (is(PickleKind::kInt)) {
    return static_cast<double>(std::get<int64_t>(state_));
  }
  check_kind(*this, PickleKind::kFloat, what);
  return std::get<double>(state_);
}

const std::string& PickleValue::as_string(std::string_view what) const {
  check_kind(*this, PickleKind::kString, what);
  return *PickleNode::as<TextNode>(*this).text;
}

std::span<const uint8_t> PickleValue::as_bytes(std::string_view what) const {
  if (!is(PickleKind::kByteArray)) {
    check_kind(*this, PickleKind::kBytes, what);
  }
  const std::string& text = *PickleNode::as<TextNode>(*this).text;
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string_view PickleValue::as_text(std::string_view what) const {
  if (!is_text(kind())) {
    fail_kind(*this, "a str or bytes", what);
  }
  return *PickleNode::as<TextNode>(*this).text;
}

std::span<const PickleValue> PickleValue::items(std::string_view what) const {
  if (!is_items(kind())) {
    fail_kind(*this, "a list, tuple or set", what);
  }
  return PickleNode::as<ItemsNode>(*this).items;
}

std::span<const PickleEntry> PickleValue::entries(std::string_view what) const {
  if (!is_dict(kind())) {
    fail_kind(*this, "a dict", what);
  }
  return PickleNode::as<DictNode>(*this).entries;
}

const PickleValue* PickleValue::find(std::string_view key) const {
  const PickleValue* found = nullptr;
  for (const PickleEntry& entry : entries()) {
    if (is_text(entry.key.kind()) && entry.key.as_text() == key) {
      found = &entry.value;
    }
  }
  return found;
}

const PickleValue& PickleValue::at(std::string_view key) const {
  const PickleValue* found = find(key);
  if (found == nullptr) {
    std::vector<std::string> keys;
    for (const PickleEntry& entry : entries().first(std::min<size_t>(entries().size(), 8))) {
      keys.push_back(is_text(entry.key.kind())
                         ? fmt::format("'{}'", shown_name(entry.key.as_text()))
                         : entry.key.describe());
    }
    throw DataError("formats.pickle",
                    fmt::format("the dict has no key '{}', among {} that begin: {}",
                                key,
                                entries().size(),
                                fmt::join(keys, ", ")));
  }
  return *found;
}

const PickleValue& PickleValue::attributes() const {
  check_kind(*this, PickleKind::kOrderedDict, {});
  return PickleNode::as<DictNode>(*this).attributes;
}

const PickleArray& PickleValue::as_array(std::string_view what) const {
  check_kind(*this, PickleKind::kArray, what);
  return PickleNode::as<ArrayNode>(*this).array;
}

const PickleGlobal& PickleValue::as_global(std::string_view what) const {
  check_kind(*this, PickleKind::kGlobal, what);
  return PickleNode::as<GlobalNode>(*this).global;
}

const PickleCall& PickleValue::as_call(std::string_view what) const {
  check_kind(*this, PickleKind::kCall, what);
  return PickleNode::as<CallNode>(*this).call;
}

const PickleValue& PickleValue::persistent_id(std::string_view what) const {
  check_kind(*this, PickleKind::kPersistent, what);
  return PickleNode::as<PersistentNode>(*this).id;
}

const std::any* PickleValue::opaque_or_null() const {
  return is(PickleKind::kOpaque) ? &PickleNode::as<OpaqueNode>(*this).value : nullptr;
}

bool PickleValue::same(const PickleValue& other) const {
  const PickleNode* node = PickleNode::of(*this);
  return node != nullptr && node == PickleNode::of(other);
}

}  // namespace argosy::formats
