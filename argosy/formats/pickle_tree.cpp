#include "argosy/formats/pickle_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "argosy/formats/pickle_node.h"
#include "argosy/formats/pickle_numpy.h"
#include "argosy/formats/pickle_problem.h"
#include "argosy/formats/pickle_text.h"

namespace argosy::formats {
namespace {

int64_t memory_limit(const PickleTree::Limits& limits) {
  constexpr int64_t kFloor = int64_t{64} << 20;
  constexpr int64_t kForEachByte = 256;
  return std::min(limits.memory_bytes, kFloor + kForEachByte * static_cast<int64_t>(limits.size));
}

/// May this kind hold other values?
bool is_container(PickleKind kind) {
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

/// Only what Python could hash. A tuple's items are looked at one level deep, as no reader here
/// needs more, and once: the same tuple may be the key a million times.
void check_key(const PickleValue& key) {
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
    throw PickleProblem{fmt::format("damaged: {} as a key", key.describe())};
  }
}

}  // namespace

PickleTree::PickleTree(const Limits& limits)
    : limits_(limits), memory_left_(memory_limit(limits)) {}

PickleTree::~PickleTree() {
  if (!finished_) {
    for (const std::shared_ptr<PickleNode>& node : containers_) {
      node->clear();
    }
  }
}

void PickleTree::charge(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(memory_left_)) {
    throw PickleProblem{
        fmt::format("its values take more than {} bytes of memory, from {} bytes of pickle: taken "
                    "for a bomb. If it is sound, raise UnpickleOptions::memory_bytes",
                    memory_limit(limits_),
                    limits_.size)};
  }
  memory_left_ -= static_cast<int64_t>(bytes);
}

PickleValue PickleTree::keep(PickleValue value) {
  if (is_container(value.kind())) {
    charge(kNodeCost);
    containers_.push_back(PickleNode::shared(value));
  }
  return value;
}

PickleValue PickleTree::text(PickleKind kind, std::string_view content) {
  charge(kNodeCost + content.size());
  switch (kind) {
    case PickleKind::kBytes:
      return PickleValue::bytes(std::string(content));
    case PickleKind::kByteArray:
      return PickleValue::byte_array(std::string(content));
    default:
      if (!is_utf8(content)) {
        throw PickleProblem{"damaged text: a str that is not UTF-8"};
      }
      return std::string(content);
  }
}

PickleValue PickleTree::tuple(std::vector<PickleValue> items) {
  charge(kItemCost * items.size());
  return keep(PickleValue::tuple(std::move(items)));
}

void PickleTree::append(const PickleValue& target,
                        PickleKind kind,
                        std::vector<PickleValue> items) {
  if (!target.is(kind)) {
    throw PickleProblem{
        fmt::format("damaged: expected {} to fill, got {}", kind_name(kind), target.describe())};
  }
  if (kind != PickleKind::kList) {
    std::ranges::for_each(items, check_key);
  }
  charge(kItemCost * items.size());
  auto& held = PickleNode::as<ItemsNode>(target).items;
  held.insert(
      held.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

void PickleTree::set_items(const PickleValue& target, std::vector<PickleValue> values) {
  if (!target.is(PickleKind::kDict) && !target.is(PickleKind::kOrderedDict)) {
    throw PickleProblem{fmt::format("damaged: expected a dict to fill, got {}", target.describe())};
  }
  if (values.size() % 2 != 0) {
    throw PickleProblem{"damaged: a dict's key has no value"};
  }
  charge(kItemCost * values.size());
  auto& entries = PickleNode::as<DictNode>(target).entries;
  for (size_t i = 0; i < values.size(); i += 2) {
    check_key(values[i]);
    entries.push_back({std::move(values[i]), std::move(values[i + 1])});
  }
}

void PickleTree::finish(const PickleValue& value) {
  for (const std::shared_ptr<PickleNode>& node : containers_) {
    if (node->depth == 0) {
      measure(node.get());
    }
  }
  check_complete(value);
  finished_ = true;
}

/// Depths of this container and of all below, without recursion.
void PickleTree::measure(PickleNode* root) const {
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
        throw PickleProblem{fmt::format("{} that holds itself", kind_name(below->kind))};
      } else if (below->depth == 0) {
        steps.push_back({below, false});
      }
    });
    if (leave) {
      node->depth = deepest + 1;
      if (node->depth > limits_.depth) {
        throw PickleProblem{fmt::format(
            "more than {} levels of containers inside each other. If the file is sound, raise "
            "UnpickleOptions::depth",
            limits_.depth)};
      }
    }
  }
}

/// Nothing half-built is in the result. Recursion is bounded: depths are known; each container is
/// looked at once, its depth's sign says so.
void PickleTree::check_complete(const PickleValue& value) const {
  PickleNode* node = PickleNode::of(value);
  if (node == nullptr) {
    return;
  }
  if (node->kind == PickleKind::kArray && !static_cast<ArrayNode*>(node)->complete) {
    throw PickleProblem{"a numpy array without its content"};
  }
  if (node->kind == PickleKind::kGlobal && static_cast<GlobalNode*>(node)->builtin >= 0) {
    throw PickleProblem{
        fmt::format("{} stands alone: only what calling it gives is read", value.describe())};
  }
  if (value.if_opaque<PickleDtype>() != nullptr) {
    throw PickleProblem{"a numpy.dtype stands alone: only arrays and numbers are read"};
  }
  if (node->depth > 0) {
    node->depth = -node->depth;
    node->visit([this](const PickleValue& child) { check_complete(child); });
  }
}

}  // namespace argosy::formats
