#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// The node to which a PickleValue points when it is more than a number. Only the unpickler changes
/// a node, and only while nobody else has it.
struct PickleNode {
  explicit PickleNode(PickleKind of_kind) : kind(of_kind) {}
  virtual ~PickleNode() = default;
  PickleNode(const PickleNode&) = delete;
  PickleNode& operator=(const PickleNode&) = delete;

  /// Visits the values below this one, each once or more.
  virtual void visit(const std::function<void(const PickleValue&)>& visitor) const {
    (void)visitor;
  }
  /// Releases all values below this one.
  virtual void clear() {}

  const PickleKind kind;
  int32_t depth = 0;  ///< for the unpickler: depth of the tree below; 0: not known yet

  template <typename Node>
  static PickleValue wrap(std::shared_ptr<Node> node) {
    return PickleValue(std::shared_ptr<PickleNode>(std::move(node)));
  }
  /// Returns the node of a value. Null for numbers, bools and None.
  static PickleNode* of(const PickleValue& value) {
    const auto* node = std::get_if<std::shared_ptr<PickleNode>>(&value.state_);
    return node == nullptr ? nullptr : node->get();
  }
  static std::shared_ptr<PickleNode> shared(const PickleValue& value) {
    const auto* node = std::get_if<std::shared_ptr<PickleNode>>(&value.state_);
    return node == nullptr ? nullptr : *node;
  }
  /// Returns the node of a value whose kind must be one of Node's.
  template <typename Node>
  static Node& as(const PickleValue& value) {
    return static_cast<Node&>(*of(value));
  }
};

/// str, bytes, bytearray.
struct TextNode final : PickleNode {
  TextNode(PickleKind of_kind, std::string content)
      : PickleNode(of_kind), text(std::make_shared<const std::string>(std::move(content))) {}
  std::shared_ptr<const std::string> text;  ///< shared with the arrays made of it
};

/// list, tuple, set, frozenset.
struct ItemsNode final : PickleNode {
  ItemsNode(PickleKind of_kind, std::vector<PickleValue> values)
      : PickleNode(of_kind), items(std::move(values)) {}
  void visit(const std::function<void(const PickleValue&)>& visitor) const override {
    for (const PickleValue& item : items) {
      visitor(item);
    }
  }
  void clear() override { items.clear(); }
  std::vector<PickleValue> items;
  bool good_key = false;  ///< for the unpickler: a tuple whose items may be a key
};

/// dict, OrderedDict.
struct DictNode final : PickleNode {
  DictNode(PickleKind of_kind, std::vector<PickleEntry> values)
      : PickleNode(of_kind), entries(std::move(values)) {}
  void visit(const std::function<void(const PickleValue&)>& visitor) const override {
    for (const PickleEntry& entry : entries) {
      visitor(entry.key);
      visitor(entry.value);
    }
    visitor(attributes);
  }
  void clear() override {
    entries.clear();
    attributes = {};
  }
  std::vector<PickleEntry> entries;
  PickleValue attributes;
};

struct ArrayNode final : PickleNode {
  explicit ArrayNode(PickleArray value) : PickleNode(PickleKind::kArray), array(std::move(value)) {}
  PickleArray array;
  bool complete = true;  ///< numpy makes arrays in two steps
};

struct GlobalNode final : PickleNode {
  explicit GlobalNode(PickleGlobal value)
      : PickleNode(PickleKind::kGlobal), global(std::move(value)) {}
  PickleGlobal global;
  int builtin = -1;  ///< number among the globals that the unpickler itself knows
};

struct CallNode final : PickleNode {
  explicit CallNode(PickleCall value) : PickleNode(PickleKind::kCall), call(std::move(value)) {}
  void visit(const std::function<void(const PickleValue&)>& visitor) const override {
    visitor(call.callable);
    for (const PickleValue& arg : call.args) {
      visitor(arg);
    }
  }
  void clear() override { call = {}; }
  PickleCall call;
};

struct PersistentNode final : PickleNode {
  explicit PersistentNode(PickleValue value)
      : PickleNode(PickleKind::kPersistent), id(std::move(value)) {}
  void visit(const std::function<void(const PickleValue&)>& visitor) const override { visitor(id); }
  void clear() override { id = {}; }
  PickleValue id;
};

struct OpaqueNode final : PickleNode {
  explicit OpaqueNode(std::any content)
      : PickleNode(PickleKind::kOpaque), value(std::move(content)) {}
  std::any value;
};

}  // namespace argosy::formats
