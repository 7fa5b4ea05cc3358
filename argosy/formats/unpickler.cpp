#include "argosy/formats/unpickler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/formats/pickle_numpy.h"
#include "argosy/formats/pickle_text.h"
#include "argosy/formats/shown_name.h"

namespace argosy::formats {
namespace {

constexpr const char* kWhere = "formats.pickle";
constexpr uint8_t kNewestProtocol = 5;

int64_t memory_limit(size_t size, int64_t wanted) {
  constexpr int64_t kFloor = int64_t{64} << 20;
  constexpr int64_t kForEachByte = 256;
  return std::min(wanted, kFloor + kForEachByte * static_cast<int64_t>(size));
}

}  // namespace

Unpickler::Unpickler(std::span<const uint8_t> bytes, const UnpickleOptions& options)
    : bytes_(bytes),
      options_(options),
      memory_left_(memory_limit(bytes.size(), options.memory_bytes)) {
  constexpr int32_t kDeepest = 1000;  // readers, and the end of a tree, go down by recursion
  ARGOSY_CHECK(options.depth > 0 && options.depth <= kDeepest,
               kWhere,
               "UnpickleOptions::depth must be 1 to {}, got {}",
               kDeepest,
               options.depth);
  ARGOSY_CHECK(options.memo > 0, kWhere, "UnpickleOptions::memo must be positive");
  ARGOSY_CHECK(options.memory_bytes > 0, kWhere, "UnpickleOptions::memory_bytes must be positive");
}

Unpickler::~Unpickler() {
  if (!finished_) {
    for (const std::shared_ptr<PickleNode>& node : containers_) {
      node->clear();
    }
  }
}

PickleValue Unpickler::run() {
  constexpr uint8_t kStop = '.';
  try {
    while (true) {
      op_at_ = at_;
      const uint8_t op = take(1)[0];
      if (op == kStop) {
        break;
      }
      const bool known = number(op) || text(op) || tuple(op) || container(op) || fill(op) ||
                         memo(op) || stack(op) || object(op);
      if (!known) {
        fail(fmt::format("byte {:02x} is no operation of a pickle: damaged, or not a pickle", op));
      }
    }
    PickleValue value = pop();
    if (!stack_.empty() || !marks_.empty()) {
      fail("values are left over at the pickle's end");
    }
    measure_depths();
    check_complete(value);
    finished_ = true;
    return value;
  } catch (const PickleProblem& problem) {
    fail(problem.what);
  }
}

bool Unpickler::is_container(PickleKind kind) {
  switch (kind) {
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kDict:
    case PickleKind::kOrderedDict:
    case PickleKind::kSet:
    case PickleKind::kFrozenSet:
    case PickleKind::kCall:
    case PickleKind::kPersistent:
      return true;
    default:
      return false;
  }
}

// ---- numbers and text ----

bool Unpickler::number(uint8_t op) {
  switch (op) {
    case 'N':
      push({});
      return true;
    case 0x88:
      push(true);
      return true;
    case 0x89:
      push(false);
      return true;
    case 'K':
      push(little_endian(1));
      return true;
    case 'M':
      push(little_endian(2));
      return true;
    case 'J':
      push(static_cast<int32_t>(little_endian(4)));
      return true;
    case 'I':
      push_int_line();
      return true;
    case 'L':
      push_long_line();
      return true;
    case 0x8a:
      push_long(take(little_endian(1)));
      return true;
    case 0x8b:
      push_long(take(little_endian(4)));
      return true;
    case 'F':
      push_float_line();
      return true;
    case 'G': {
      std::array<uint8_t, 8> digits{};
      const std::span<const uint8_t> bits = take(digits.size());
      std::reverse_copy(bits.begin(), bits.end(), digits.begin());
      push(std::bit_cast<double>(digits));
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::text(uint8_t op) {
  switch (op) {
    case 'X':
      push_text(PickleKind::kString, take_text(4));
      return true;
    case 0x8c:
      push_text(PickleKind::kString, take_text(1));
      return true;
    case 0x8d:
      push_text(PickleKind::kString, take_text(8));
      return true;
    case 'T':
    case 'B':
      push_text(PickleKind::kBytes, take_text(4));
      return true;
    case 'U':
    case 'C':
      push_text(PickleKind::kBytes, take_text(1));
      return true;
    case 0x8e:
      push_text(PickleKind::kBytes, take_text(8));
      return true;
    case 0x96:
      push_text(PickleKind::kByteArray, take_text(8));
      return true;
    case 'V':
      if (const auto decoded = decode_raw_unicode_escape(line())) {
        push_text(PickleKind::kString, *decoded);
        return true;
      }
      fail("damaged text: an escape that is none");
    case 'S':
      if (const auto decoded = decode_string_literal(strings::trim(line()))) {
        push_text(PickleKind::kBytes, *decoded);
        return true;
      }
      fail("damaged text: not a string literal");
    default:
      return false;
  }
}

std::span<const uint8_t> Unpickler::take(uint64_t size) {
  if (size > bytes_.size() - at_) {
    fail(fmt::format("truncated or damaged: {} more bytes are promised, {} are left",
                     size,
                     bytes_.size() - at_));
  }
  at_ += size;
  return bytes_.subspan(at_ - size, size);
}

uint64_t Unpickler::little_endian(size_t width) {
  uint64_t value = 0;
  const std::span<const uint8_t> digits = take(width);
  for (size_t i = 0; i < width; ++i) {
    value |= uint64_t{digits[i]} << (8 * i);
  }
  return value;
}

std::string_view Unpickler::take_text(size_t width_of_length) {
  const std::span<const uint8_t> content = take(little_endian(width_of_length));
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::string_view Unpickler::line() {
  const auto rest = bytes_.subspan(at_);
  const auto* end = static_cast<const uint8_t*>(
      rest.empty() ? nullptr : std::memchr(rest.data(), '\n', rest.size()));
  if (end == nullptr) {
    fail("truncated or damaged: a line does not end");
  }
  const auto size = static_cast<size_t>(end - rest.data());
  at_ += size + 1;
  return {reinterpret_cast<const char*>(rest.data()), size};
}

void Unpickler::push_int_line() {
  const std::string_view digits = line();
  if (digits == "00" || digits == "01") {  // how protocol 0 writes bools
    push(digits == "01");
    return;
  }
  const auto value = strings::parse_int(digits);
  if (!value) {
    fail(fmt::format("'{}' is no int of 64 bits", shown_name(digits)));
  }
  push(*value);
}

void Unpickler::push_long_line() {
  std::string_view digits = line();
  if (digits.ends_with('L')) {
    digits.remove_suffix(1);
  }
  const auto value = strings::parse_int(digits);
  if (!value) {
    fail(fmt::format("'{}' is no int of 64 bits", shown_name(digits)));
  }
  push(*value);
}

/// Two's complement, little-endian, of any length.
void Unpickler::push_long(std::span<const uint8_t> digits) {
  constexpr size_t kWidth = sizeof(int64_t);
  const uint8_t sign = !digits.empty() && (digits.back() & 0x80) != 0 ? 0xff : 0;
  uint64_t value = 0;
  for (size_t i = 0; i < kWidth; ++i) {
    value |= uint64_t{i < digits.size() ? digits[i] : sign} << (8 * i);
  }
  const auto beyond = digits.size() > kWidth ? digits.subspan(kWidth) : std::span<const uint8_t>();
  const bool fits =
      std::all_of(beyond.begin(), beyond.end(), [&](uint8_t byte) { return byte == sign; }) &&
      (beyond.empty() || (value >> 63 != 0) == (sign != 0));
  if (!fits) {
    fail(fmt::format("an int of {} bytes: more than 64 bits", digits.size()));
  }
  push(static_cast<int64_t>(value));
}

void Unpickler::push_float_line() {
  const std::string_view digits = line();
  const auto value = strings::parse_double(digits);
  if (!value) {
    fail(fmt::format("'{}' is no float", shown_name(digits)));
  }
  push(*value);
}

void Unpickler::push_text(PickleKind kind, std::string_view text) {
  if (kind == PickleKind::kString && !is_utf8(text)) {
    fail("damaged text: a str that is not UTF-8");
  }
  charge(kNodeCost + text.size());
  std::string content(text);
  if (kind == PickleKind::kString) {
    push(std::move(content));
  } else {
    push(kind == PickleKind::kBytes ? PickleValue::bytes(std::move(content))
                                    : PickleValue::byte_array(std::move(content)));
  }
}

// ---- containers ----

bool Unpickler::tuple(uint8_t op) {
  switch (op) {
    case ')':
      push_tuple(0);
      return true;
    case 0x85:
      push_tuple(1);
      return true;
    case 0x86:
      push_tuple(2);
      return true;
    case 0x87:
      push_tuple(3);
      return true;
    case 't':
      push_tuple(stack_.size() - mark());
      marks_.pop_back();
      return true;
    default:
      return false;
  }
}

bool Unpickler::container(uint8_t op) {
  switch (op) {
    case ']':
      push_new(PickleValue::list({}));
      return true;
    case '}':
      push_new(PickleValue::dict({}));
      return true;
    case 0x8f:
      push_new(PickleValue::set({}));
      return true;
    case 'l':
      push_new(PickleValue::list(pop_to_mark()));
      return true;
    case 'd':
      push_new(PickleValue::dict(to_entries(pop_to_mark())));
      return true;
    case 0x91: {
      std::vector<PickleValue> items = pop_to_mark();
      for (const PickleValue& item : items) {
        check_key(item);
      }
      push_new(PickleValue::frozen_set(std::move(items)));
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::fill(uint8_t op) {
  switch (op) {
    case 'a': {
      std::vector<PickleValue> one;
      one.push_back(pop());
      append(std::move(one), PickleKind::kList);
      return true;
    }
    case 'e':
      append(pop_to_mark(), PickleKind::kList);
      return true;
    case 0x90:
      append(pop_to_mark(), PickleKind::kSet);
      return true;
    case 's': {
      std::vector<PickleValue> pair(2);
      pair[1] = pop();
      pair[0] = pop();
      set_items(std::move(pair));
      return true;
    }
    case 'u':
      set_items(pop_to_mark());
      return true;
    default:
      return false;
  }
}

void Unpickler::push_new(PickleValue container) {
  keep(container);
  push(std::move(container));
}

void Unpickler::keep(const PickleValue& container) {
  charge(kNodeCost);
  containers_.push_back(PickleNode::shared(container));
}

void Unpickler::keep_if_container(const PickleValue& value) {
  if (is_container(value.kind())) {
    keep(value);
  }
}

size_t Unpickler::mark() const {
  if (marks_.empty()) {
    fail("damaged: the operation needs a mark that is not there");
  }
  return marks_.back();
}

PickleValue& Unpickler::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    fail("damaged: the operation needs a value that is not there");
  }
  return stack_.back();
}

PickleValue Unpickler::pop() {
  PickleValue value = std::move(top());
  stack_.pop_back();
  return value;
}

std::vector<PickleValue> Unpickler::pop_to_mark() {
  const auto begin = stack_.begin() + static_cast<int64_t>(mark());
  std::vector<PickleValue> values(std::make_move_iterator(begin),
                                  std::make_move_iterator(stack_.end()));
  charge(kItemCost * values.size());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return values;
}

void Unpickler::push_tuple(size_t size) {
  if (size == 0) {
    if (empty_tuple_.is_none()) {
      empty_tuple_ = PickleValue::tuple({});
    }
    push(empty_tuple_);
    return;
  }
  charge(kItemCost * size);
  std::vector<PickleValue> items(size);
  for (size_t i = size; i-- > 0;) {
    items[i] = pop();
  }
  push_new(PickleValue::tuple(std::move(items)));
}

void Unpickler::append(std::vector<PickleValue> values, PickleKind kind) {
  if (!top().is(kind)) {
    fail(fmt::format("damaged: expected {} to fill, got {}", kind_name(kind), top().describe()));
  }
  auto& items = PickleNode::as<ItemsNode>(top()).items;
  if (kind == PickleKind::kSet) {
    for (const PickleValue& value : values) {
      check_key(value);
    }
  }
  charge(kItemCost * values.size());
  items.insert(
      items.end(), std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
}

void Unpickler::set_items(std::vector<PickleValue> values) {
  if (!top().is(PickleKind::kDict) && !top().is(PickleKind::kOrderedDict)) {
    fail(fmt::format("damaged: expected a dict to fill, got {}", top().describe()));
  }
  std::vector<PickleEntry> more = to_entries(std::move(values));
  auto& entries = PickleNode::as<DictNode>(top()).entries;
  entries.insert(
      entries.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<PickleEntry> Unpickler::to_entries(std::vector<PickleValue> values) {
  if (values.size() % 2 != 0) {
    fail("damaged: a dict's key has no value");
  }
  charge(kItemCost * values.size());
  std::vector<PickleEntry> entries;
  entries.reserve(values.size() / 2);
  for (size_t i = 0; i < values.size(); i += 2) {
    check_key(values[i]);
    entries.push_back({std::move(values[i]), std::move(values[i + 1])});
  }
  return entries;
}

/// Only what Python could hash. A tuple's items are looked at one level deep: no reader here needs
/// more, and it stays linear.
void Unpickler::check_key(const PickleValue& key) const {
  const auto plain = [](PickleKind kind) {
    return kind <= PickleKind::kBytes || kind == PickleKind::kGlobal;
  };
  bool good = plain(key.kind()) || key.is(PickleKind::kFrozenSet);
  if (key.is(PickleKind::kTuple)) {
    const auto items = key.items();
    good = std::all_of(items.begin(), items.end(), [&](const PickleValue& item) {
      return plain(item.kind()) || item.is(PickleKind::kTuple) || item.is(PickleKind::kFrozenSet);
    });
  }
  if (!good) {
    fail(fmt::format("damaged: {} as a key", key.describe()));
  }
}

// ---- stack and memo ----

bool Unpickler::stack(uint8_t op) {
  switch (op) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        (void)pop();
      }
      return true;
    case '1':
      (void)pop_to_mark();
      return true;
    case '2':
      push(top());
      return true;
    case 0x80:
      if (const uint64_t protocol = little_endian(1); protocol > kNewestProtocol) {
        fail(fmt::format("protocol {}: expected 0 to {}", protocol, kNewestProtocol));
      }
      return true;
    case 0x95:
      if (const uint64_t size = little_endian(8); size > bytes_.size() - at_) {
        fail(fmt::format(
            "truncated or damaged: a frame of {} bytes, {} are left", size, bytes_.size() - at_));
      }
      return true;
    default:
      return false;
  }
}

bool Unpickler::memo(uint8_t op) {
  const auto index_line = [this]() -> uint64_t {
    const std::string_view digits = line();
    const auto index = strings::parse_int(digits);
    if (!index || *index < 0) {
      fail(fmt::format("'{}' is no place in the memo", shown_name(digits)));
    }
    return static_cast<uint64_t>(*index);
  };
  switch (op) {
    case 'p':
      put(index_line());
      return true;
    case 'q':
      put(little_endian(1));
      return true;
    case 'r':
      put(little_endian(4));
      return true;
    case 0x94:
      put(static_cast<uint64_t>(memo_count_));
      return true;
    case 'g':
      get(index_line());
      return true;
    case 'h':
      get(little_endian(1));
      return true;
    case 'j':
      get(little_endian(4));
      return true;
    default:
      return false;
  }
}

void Unpickler::put(uint64_t index) {
  if (index >= static_cast<uint64_t>(options_.memo)) {
    fail(fmt::format(
        "more than {} places in the memo. If the file is sound, raise UnpickleOptions::memo",
        options_.memo));
  }
  if (index >= memo_.size()) {
    charge(kMemoCost * (index + 1 - memo_.size()));
    memo_.resize(index + 1);
  }
  memo_count_ += memo_[index].has_value() ? 0 : 1;
  memo_[index] = top();
}

void Unpickler::get(uint64_t index) {
  if (index >= memo_.size() || !memo_[index]) {
    fail(fmt::format("damaged: place {} of the memo is empty", index));
  }
  push(*memo_[index]);
}

// ---- the end ----

/// Depth of every container, without recursion. Errors: one that holds itself; the limit.
void Unpickler::measure_depths() {
  for (const std::shared_ptr<PickleNode>& node : containers_) {
    if (node->depth == 0) {
      measure(node.get());
    }
  }
}

void Unpickler::measure(PickleNode* root) {
  constexpr int32_t kOpen = -1;
  struct Step {
    PickleNode* node;
    bool leave;
  };
  std::vector<Step> steps{{root, false}};
  while (!steps.empty()) {
    const auto [node, leave] = steps.back();
    steps.pop_back();
    if (!leave && node->depth != 0) {
      continue;  // reached a second way, and done
    }
    if (!leave) {
      node->depth = kOpen;
      steps.push_back({node, true});
    }
    int32_t deepest = 0;
    node->visit([&](const PickleValue& child) {
      PickleNode* below = PickleNode::of(child);
      if (below == nullptr || !is_container(below->kind)) {
        return;
      }
      if (leave) {
        deepest = std::max(deepest, below->depth);
      } else if (below->depth == kOpen) {
        fail(fmt::format("{} that holds itself", kind_name(below->kind)));
      } else if (below->depth == 0) {
        steps.push_back({below, false});
      }
    });
    if (leave) {
      node->depth = deepest + 1;
      if (node->depth > options_.depth) {
        fail(fmt::format(
            "more than {} levels of containers inside each other. If the file is sound, raise "
            "UnpickleOptions::depth",
            options_.depth));
      }
    }
  }
}

/// Nothing half-built is in the result. Recursion is bounded: depths are known; each container is
/// looked at once, its depth's sign says so.
void Unpickler::check_complete(const PickleValue& value) {
  PickleNode* node = PickleNode::of(value);
  if (node == nullptr) {
    return;
  }
  if (node->kind == PickleKind::kArray && !static_cast<ArrayNode*>(node)->complete) {
    fail("a numpy array without its content");
  }
  if (node->kind == PickleKind::kGlobal && static_cast<GlobalNode*>(node)->builtin >= 0) {
    fail(fmt::format("{} stands alone: only what calling it gives is read", value.describe()));
  }
  if (value.if_opaque<PickleDtype>() != nullptr) {
    fail("a numpy.dtype stands alone: only arrays and numbers are read");
  }
  if (node->depth > 0) {
    node->depth = -node->depth;
    node->visit([this](const PickleValue& child) { check_complete(child); });
  }
}

void Unpickler::charge(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(memory_left_)) {
    fail(
        fmt::format("its values take more than {} bytes of memory, from {} bytes of pickle: taken "
                    "for a bomb. If it is "
                    "sound, raise UnpickleOptions::memory_bytes",
                    memory_limit(bytes_.size(), options_.memory_bytes),
                    bytes_.size()));
  }
  memory_left_ -= static_cast<int64_t>(bytes);
}

void Unpickler::fail(const std::string& what) const {
  throw DataError(kWhere, what, {options_.path, static_cast<int64_t>(op_at_)});
}

}  // namespace argosy::formats
