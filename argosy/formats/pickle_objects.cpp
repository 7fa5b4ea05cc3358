#include "argosy/formats/pickle_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "argosy/formats/pickle_node.h"
#include "argosy/formats/pickle_numpy.h"
#include "argosy/formats/pickle_problem.h"
#include "argosy/formats/pickle_text.h"
#include "argosy/formats/shown_name.h"

namespace argosy::formats {
namespace {

bool is_sequence(const PickleValue& value) {
  return value.is(PickleKind::kList) || value.is(PickleKind::kTuple);
}

bool is_latin1(const PickleValue& encoding) {
  if (!encoding.is(PickleKind::kString) && !encoding.is(PickleKind::kBytes)) {
    return false;
  }
  const std::string_view name = encoding.as_text();
  return name == "latin1" || name == "latin-1";
}

/// _codecs.encode(str, "latin1"): how protocol 2 writes bytes.
PickleValue encoded(PickleTree& tree, const PickleArgs& args) {
  if (args.size() != 2 || !args[0].is(PickleKind::kString) || !is_latin1(args[1])) {
    throw PickleProblem{"refused: _codecs.encode with anything but a str and latin1"};
  }
  tree.charge(args[0].as_string().size());
  std::optional<std::string> bytes = utf8_to_latin1(args[0].as_string());
  if (!bytes) {
    throw PickleProblem{"damaged: bytes written as a str have a character beyond ff"};
  }
  return PickleValue::bytes(*std::move(bytes));
}

/// OrderedDict() or, as Python 2 writes it, OrderedDict([[key, value], ...]).
PickleValue ordered_dict_of(PickleTree& tree, const PickleArgs& args) {
  std::vector<PickleValue> flat;
  if (!args.empty()) {
    const bool pairs = args.size() == 1 && is_sequence(args[0]) &&
                       std::ranges::all_of(args[0].items(), [](const PickleValue& pair) {
                         return is_sequence(pair) && pair.items().size() == 2;
                       });
    if (!pairs) {
      throw PickleProblem{"damaged: an OrderedDict of something else than a list of pairs"};
    }
    tree.charge(2 * PickleTree::kItemCost * args[0].items().size());
    for (const PickleValue& pair : args[0].items()) {
      flat.insert(flat.end(), pair.items().begin(), pair.items().end());
    }
  }
  PickleValue dict = tree.keep(PickleValue::ordered_dict({}));
  tree.set_items(dict, std::move(flat));
  return dict;
}

/// set([...]), frozenset([...]): before protocol 4.
PickleValue set_of(PickleTree& tree, const PickleArgs& args, PickleValue set) {
  if (!args.empty() && !(args.size() == 1 && is_sequence(args[0]))) {
    throw PickleProblem{"damaged: a set of something else than a list"};
  }
  tree.keep(set);
  if (!args.empty()) {
    tree.charge(PickleTree::kItemCost * args[0].items().size());
    tree.append(set, set.kind(), {args[0].items().begin(), args[0].items().end()});
  }
  return set;
}

/// bytes(), bytearray(), bytearray(b"..."), bytearray("...", "latin-1"): before protocol 5.
PickleValue bytes_of(PickleTree& tree, const PickleArgs& args, PickleKind kind) {
  if (args.size() == 2) {
    return tree.text(kind, encoded(tree, args).as_text());
  }
  if (!args.empty() && !(args.size() == 1 && args[0].is(PickleKind::kBytes))) {
    throw PickleProblem{"damaged: bytes of something else than bytes"};
  }
  return tree.text(kind, args.empty() ? std::string_view() : args[0].as_text());
}

using Make = PickleValue (*)(PickleTree& tree, const PickleArgs& args);

constexpr Make kArray = [](PickleTree&, const PickleArgs& args) { return make_array(args); };
constexpr Make kScalar = [](PickleTree&, const PickleArgs& args) { return make_scalar(args); };
constexpr Make kDtype = [](PickleTree&, const PickleArgs& args) { return make_dtype(args); };
constexpr Make kFromBuffer = [](PickleTree& tree, const PickleArgs& args) {
  int64_t taken = 0;
  PickleValue array = array_from_buffer(args, taken);
  tree.charge(static_cast<uint64_t>(taken));
  return array;
};
constexpr Make kNdarray = [](PickleTree&, const PickleArgs&) -> PickleValue {
  throw PickleProblem{"refused: a call of numpy.ndarray itself"};
};
constexpr Make kSet = [](PickleTree& tree, const PickleArgs& args) {
  return set_of(tree, args, PickleValue::set({}));
};
constexpr Make kFrozenSet = [](PickleTree& tree, const PickleArgs& args) {
  return set_of(tree, args, PickleValue::frozen_set({}));
};
constexpr Make kBytes = [](PickleTree& tree, const PickleArgs& args) {
  return bytes_of(tree, args, PickleKind::kBytes);
};
constexpr Make kByteArray = [](PickleTree& tree, const PickleArgs& args) {
  return bytes_of(tree, args, PickleKind::kByteArray);
};

/// The globals that values of the allowed kinds are written with. GlobalNode::builtin is a place
/// here.
struct Builtin {
  std::string_view module;
  std::string_view name;
  Make make;
};

constexpr auto kBuiltins = std::to_array<Builtin>({
    {"numpy.core.multiarray", "_reconstruct", kArray},
    {"numpy._core.multiarray", "_reconstruct", kArray},
    {"numpy.core.multiarray", "scalar", kScalar},
    {"numpy._core.multiarray", "scalar", kScalar},
    {"numpy.core.numeric", "_frombuffer", kFromBuffer},
    {"numpy._core.numeric", "_frombuffer", kFromBuffer},
    {"numpy", "ndarray", kNdarray},
    {"numpy", "dtype", kDtype},
    {"_codecs", "encode", encoded},
    {"collections", "OrderedDict", ordered_dict_of},
    {"builtins", "set", kSet},
    {"__builtin__", "set", kSet},
    {"builtins", "frozenset", kFrozenSet},
    {"__builtin__", "frozenset", kFrozenSet},
    {"builtins", "bytes", kBytes},
    {"__builtin__", "bytes", kBytes},
    {"builtins", "bytearray", kByteArray},
    {"__builtin__", "bytearray", kByteArray},
});

}  // namespace

PickleValue PickleObjects::global(std::string_view module, std::string_view name) {
  tree_.charge(2 * PickleTree::kItemCost + module.size() + name.size());
  const auto* known = std::ranges::find_if(kBuiltins, [&](const Builtin& builtin) {
    return builtin.module == module && builtin.name == name;
  });
  if (known != kBuiltins.end()) {
    PickleValue value = PickleValue::global(std::string(module), std::string(name));
    PickleNode::as<GlobalNode>(value).builtin = static_cast<int>(known - kBuiltins.begin());
    return value;
  }
  std::optional<PickleValue> value;
  if (options_.global) {
    value = options_.global(module, name);
  }
  if (!value) {
    throw PickleProblem{
        fmt::format("refused: the global {}.{} is not one that plain values and numpy arrays need. "
                    "Nothing was executed; a pickle from others can run any program where Python "
                    "loads it",
                    shown_name(module),
                    shown_name(name))};
  }
  return *std::move(value);
}

PickleValue PickleObjects::call(const PickleValue& callable, const PickleValue& args) {
  if (!args.is(PickleKind::kTuple)) {
    throw PickleProblem{fmt::format("damaged: a call's arguments are {}", args.describe())};
  }
  if (callable.is(PickleKind::kGlobal)) {
    if (const int builtin = PickleNode::as<GlobalNode>(callable).builtin; builtin >= 0) {
      tree_.charge(PickleTree::kNodeCost);
      return kBuiltins[static_cast<size_t>(builtin)].make(tree_,
                                                          PickleNode::as<ItemsNode>(args).items);
    }
  }
  std::optional<PickleValue> value;
  if (options_.call) {
    value = options_.call(callable, args.items());
  }
  if (!value) {
    throw PickleProblem{
        fmt::format("refused: a call of {}. Nothing was executed", callable.describe())};
  }
  return tree_.keep(*std::move(value));
}

void PickleObjects::build(const PickleValue& object, const PickleValue& state) {
  if (object.is(PickleKind::kArray)) {
    tree_.charge(static_cast<uint64_t>(build_array(object, state)));
  } else if (object.if_opaque<PickleDtype>() != nullptr) {
    build_dtype(*std::any_cast<PickleDtype>(&PickleNode::as<OpaqueNode>(object).value), state);
  } else if (object.is(PickleKind::kOrderedDict) && state.is(PickleKind::kDict)) {
    PickleNode::as<DictNode>(object).attributes = state;
  } else {
    throw PickleProblem{
        fmt::format("refused: {} gets the state {}", object.describe(), state.describe())};
  }
}

PickleValue PickleObjects::persistent(const PickleValue& id) {
  std::optional<PickleValue> value;
  if (options_.persistent) {
    value = options_.persistent(id);
  }
  if (!value) {
    throw PickleProblem{
        fmt::format("refused: an object outside of the pickle, of the id {}", id.describe())};
  }
  return tree_.keep(*std::move(value));
}

}  // namespace argosy::formats
