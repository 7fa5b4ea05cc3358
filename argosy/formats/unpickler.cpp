#include "argosy/formats/unpickler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/formats/pickle_numpy.h"
#include "argosy/formats/pickle_ops.h"

namespace argosy::formats {
namespace {

constexpr uint8_t kOldestProtocol = 2;
constexpr uint8_t kNewestProtocol = 5;
constexpr std::string_view kWriteAnew =
    "Write the file again with pickle.dump(value, file, protocol=2)";

/// Operations that protocols 0 and 1 alone write: numbers, texts and places of the memo as lines.
constexpr std::string_view kOldOperations = "FILPSVdgilp";

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
               "formats.pickle",
               "UnpickleOptions::depth must be 1 to {}, got {}",
               kDeepest,
               options.depth);
  ARGOSY_CHECK(options.memo > 0, "formats.pickle", "UnpickleOptions::memo must be positive");
  ARGOSY_CHECK(
      options.memory_bytes > 0, "formats.pickle", "UnpickleOptions::memory_bytes must be positive");
}

Unpickler::~Unpickler() {
  if (!finished_) {
    for (const std::shared_ptr<PickleNode>& node : containers_) {
      node->clear();
    }
  }
}

PickleValue Unpickler::run() {
  try {
    while (true) {
      op_at_ = at_;
      const uint8_t op = take(1)[0];
      if (op == kOpStop) {
        break;
      }
      const bool known = number(op) || text(op) || tuple(op) || container(op) || fill(op) ||
                         memo(op) || stack(op) || object(op);
      if (!known && kOldOperations.find(static_cast<char>(op)) != std::string_view::npos) {
        fail(
            fmt::format("operation '{}' belongs to pickle's protocols 0 and 1: expected protocol "
                        "{} to {}. {}",
                        static_cast<char>(op),
                        kOldestProtocol,
                        kNewestProtocol,
                        kWriteAnew));
      }
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

// ---- containers ----

bool Unpickler::tuple(uint8_t op) {
  switch (op) {
    case kOpEmptyTuple:
      push_tuple(0);
      return true;
    case kOpTuple1:
      push_tuple(1);
      return true;
    case kOpTuple2:
      push_tuple(2);
      return true;
    case kOpTuple3:
      push_tuple(3);
      return true;
    case kOpTuple:
      push_tuple(stack_.size() - mark());
      marks_.pop_back();
      return true;
    default:
      return false;
  }
}

bool Unpickler::container(uint8_t op) {
  switch (op) {
    case kOpEmptyList:
      push_new(PickleValue::list({}));
      return true;
    case kOpEmptyDict:
      push_new(PickleValue::dict({}));
      return true;
    case kOpEmptySet:
      push_new(PickleValue::set({}));
      return true;
    case kOpFrozenSet: {
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
    case kOpAppend: {
      std::vector<PickleValue> one;
      one.push_back(pop());
      append(std::move(one), PickleKind::kList);
      return true;
    }
    case kOpAppends:
      append(pop_to_mark(), PickleKind::kList);
      return true;
    case kOpAddItems:
      append(pop_to_mark(), PickleKind::kSet);
      return true;
    case kOpSetItem: {
      std::vector<PickleValue> pair(2);
      pair[1] = pop();
      pair[0] = pop();
      set_items(std::move(pair));
      return true;
    }
    case kOpSetItems:
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

/// Only what Python could hash. A tuple's items are looked at one level deep, as no reader here
/// needs more, and once: the same tuple may be the key a million times.
void Unpickler::check_key(const PickleValue& key) const {
  const auto plain = [](PickleKind kind) {
    return kind <= PickleKind::kBytes || kind == PickleKind::kGlobal;
  };
  bool good = plain(key.kind()) || key.is(PickleKind::kFrozenSet);
  if (key.is(PickleKind::kTuple)) {
    auto& tuple = PickleNode::as<ItemsNode>(key);
    good = tuple.good_key || std::ranges::all_of(tuple.items, [&](const PickleValue& item) {
             return plain(item.kind()) || item.is(PickleKind::kTuple) ||
                    item.is(PickleKind::kFrozenSet);
           });
    tuple.good_key = good;
  }
  if (!good) {
    fail(fmt::format("damaged: {} as a key", key.describe()));
  }
}

// ---- stack and memo ----

bool Unpickler::stack(uint8_t op) {
  switch (op) {
    case kOpMark:
      marks_.push_back(stack_.size());
      return true;
    case kOpPop:
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        (void)pop();
      }
      return true;
    case kOpPopMark:
      (void)pop_to_mark();
      return true;
    case kOpDup:
      push(top());
      return true;
    case kOpProto:
      if (const uint64_t protocol = little_endian(1);
          protocol < kOldestProtocol || protocol > kNewestProtocol) {
        fail(fmt::format("protocol {}: expected {} to {}. {}",
                         protocol,
                         kOldestProtocol,
                         kNewestProtocol,
                         kWriteAnew));
      }
      return true;
    case kOpFrame:
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
  switch (op) {
    case kOpBinPut:
      put(little_endian(1));
      return true;
    case kOpLongBinPut:
      put(little_endian(4));
      return true;
    case kOpMemoize:
      put(static_cast<uint64_t>(memo_count_));
      return true;
    case kOpBinGet:
      get(little_endian(1));
      return true;
    case kOpLongBinGet:
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
    PickleNode* const node = steps.back().node;
    const bool leave = steps.back().leave;  // a structured binding could not be captured
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
  throw DataError("formats.pickle", what, {options_.path, static_cast<int64_t>(op_at_)});
}

}  // namespace argosy::formats
