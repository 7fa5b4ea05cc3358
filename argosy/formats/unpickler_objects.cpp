// Names, calls and states: the operations by which a pickle could do harm.
#include <fmt/format.h>

#include <utility>

#include "argosy/base/error.h"
#include "argosy/formats/pickle_numpy.h"
#include "argosy/formats/pickle_ops.h"
#include "argosy/formats/pickle_text.h"
#include "argosy/formats/shown_name.h"
#include "argosy/formats/unpickler.h"

namespace argosy::formats {
namespace {

/// The globals that values of the allowed kinds are written with.
enum Known {
  kReconstruct,
  kScalar,
  kFromBuffer,
  kNdarray,
  kDtype,
  kEncode,
  kOrderedDict,
  kSet,
  kFrozenSet,
  kBytes,
  kByteArray,
  kUnknown = -1
};

struct KnownName {
  std::string_view module;
  std::string_view name;
  Known known;
};

constexpr KnownName kKnown[] = {
    {"numpy.core.multiarray", "_reconstruct", kReconstruct},
    {"numpy._core.multiarray", "_reconstruct", kReconstruct},
    {"numpy.core.multiarray", "scalar", kScalar},
    {"numpy._core.multiarray", "scalar", kScalar},
    {"numpy.core.numeric", "_frombuffer", kFromBuffer},
    {"numpy._core.numeric", "_frombuffer", kFromBuffer},
    {"numpy", "ndarray", kNdarray},
    {"numpy", "dtype", kDtype},
    {"_codecs", "encode", kEncode},
    {"collections", "OrderedDict", kOrderedDict},
    {"builtins", "set", kSet},
    {"__builtin__", "set", kSet},
    {"builtins", "frozenset", kFrozenSet},
    {"__builtin__", "frozenset", kFrozenSet},
    {"builtins", "bytes", kBytes},
    {"__builtin__", "bytes", kBytes},
    {"builtins", "bytearray", kByteArray},
    {"__builtin__", "bytearray", kByteArray},
};

Known known_global(std::string_view module, std::string_view name) {
  for (const KnownName& known : kKnown) {
    if (known.module == module && known.name == name) {
      return known.known;
    }
  }
  return kUnknown;
}

bool is_latin1(const PickleValue& encoding) {
  if (!encoding.is(PickleKind::kString) && !encoding.is(PickleKind::kBytes)) {
    return false;
  }
  const std::string_view name = encoding.as_text();
  return name == "latin1" || name == "latin-1";
}

}  // namespace

bool Unpickler::object(uint8_t op) {
  switch (op) {
    case kOpGlobal: {
      const std::string_view module = line();
      push_global(module, line());
      return true;
    }
    case kOpStackGlobal: {
      const PickleValue name = pop();
      const PickleValue module = pop();
      if (!name.is(PickleKind::kString) || !module.is(PickleKind::kString)) {
        fail("damaged: a global's name is no str");
      }
      push_global(module.as_string(), name.as_string());
      return true;
    }
    case kOpReduce:
      reduce();
      return true;
    case kOpBuild:
      build();
      return true;
    case kOpBinPersId:
      push_persistent(pop());
      return true;
    case kOpObj: {
      const size_t begin = mark();
      fail(fmt::format("refused: it makes an instance of {}",
                       begin < stack_.size() ? stack_[begin].describe() : "nothing"));
    }
    case kOpNewObjEx:
      (void)pop();
      [[fallthrough]];
    case kOpNewObj:
      (void)pop();
      fail(fmt::format("refused: it makes an instance of {}", pop().describe()));
    case kOpExt1:
    case kOpExt2:
    case kOpExt4:
      fail("refused: it uses a number of Python's extension registry for a name");
    case kOpNextBuffer:
    case kOpReadonlyBuffer:
      fail("refused: it takes a buffer from outside of the pickle");
    default:
      return false;
  }
}

void Unpickler::refuse(std::string_view module, std::string_view name) const {
  fail(
      fmt::format("refused: the global {}.{} is none that plain values and numpy arrays need. "
                  "Nothing was executed; a "
                  "pickle from others can run any program where Python loads it",
                  shown_name(module),
                  shown_name(name)));
}

void Unpickler::push_global(std::string_view module, std::string_view name) {
  charge(2 * kItemCost + module.size() + name.size());
  const Known known = known_global(module, name);
  if (known != kUnknown) {
    PickleValue value = PickleValue::global(std::string(module), std::string(name));
    PickleNode::as<GlobalNode>(value).builtin = known;
    push(std::move(value));
    return;
  }
  std::optional<PickleValue> value;
  if (options_.global) {
    value = options_.global(module, name);
  }
  if (!value) {
    refuse(module, name);
  }
  push(*std::move(value));
}

void Unpickler::reduce() {
  const PickleValue args = pop();
  const PickleValue callable = pop();
  if (!args.is(PickleKind::kTuple)) {
    fail(fmt::format("damaged: a call's arguments are {}", args.describe()));
  }
  if (callable.is(PickleKind::kGlobal)) {
    if (const int known = PickleNode::as<GlobalNode>(callable).builtin; known >= 0) {
      push(call_known(known, PickleNode::as<ItemsNode>(args).items));
      return;
    }
  }
  std::optional<PickleValue> value;
  if (options_.call) {
    value = options_.call(callable, args.items());
  }
  if (!value) {
    fail(fmt::format("refused: a call of {}. Nothing was executed", callable.describe()));
  }
  keep_if_container(*value);
  push(*std::move(value));
}

PickleValue Unpickler::call_known(int known, const std::vector<PickleValue>& args) {
  charge(kNodeCost);
  int64_t taken = 0;
  switch (known) {
    case kReconstruct:
      return make_array(args);
    case kFromBuffer: {
      PickleValue value = array_from_buffer(args, taken);
      charge(static_cast<uint64_t>(taken));
      return value;
    }
    case kScalar:
      return make_scalar(args);
    case kDtype:
      return make_dtype(args);
    case kEncode:
      return encode(args);
    case kOrderedDict:
      return ordered_dict(args);
    case kSet:
      return items_of(PickleKind::kSet, args);
    case kFrozenSet:
      return items_of(PickleKind::kFrozenSet, args);
    case kBytes:
      return bytes_of(PickleKind::kBytes, args);
    case kByteArray:
      return bytes_of(PickleKind::kByteArray, args);
    default:
      fail("refused: a call of numpy.ndarray itself");
  }
}

/// _codecs.encode(str, "latin1"): how protocol 2 writes bytes.
PickleValue Unpickler::encode(const std::vector<PickleValue>& args) {
  if (args.size() != 2 || !args[0].is(PickleKind::kString) || !is_latin1(args[1])) {
    fail("refused: _codecs.encode with anything but a str and latin1");
  }
  charge(args[0].as_string().size());
  std::optional<std::string> bytes = utf8_to_latin1(args[0].as_string());
  if (!bytes) {
    fail("damaged: bytes written as a str have a character beyond ff");
  }
  return PickleValue::bytes(*std::move(bytes));
}

/// OrderedDict() or, as Python 2 writes it, OrderedDict([[key, value], ...]).
PickleValue Unpickler::ordered_dict(const std::vector<PickleValue>& args) {
  std::vector<PickleValue> flat;
  if (!args.empty()) {
    const bool list =
        args.size() == 1 && (args[0].is(PickleKind::kList) || args[0].is(PickleKind::kTuple));
    if (!list) {
      fail("damaged: an OrderedDict of something else than a list of pairs");
    }
    charge(2 * kItemCost * args[0].items().size());
    for (const PickleValue& pair : args[0].items()) {
      const bool two =
          (pair.is(PickleKind::kList) || pair.is(PickleKind::kTuple)) && pair.items().size() == 2;
      if (!two) {
        fail("damaged: an OrderedDict of something else than a list of pairs");
      }
      flat.push_back(pair.items()[0]);
      flat.push_back(pair.items()[1]);
    }
  }
  PickleValue value = PickleValue::ordered_dict(to_entries(std::move(flat)));
  keep(value);
  return value;
}

/// set([...]), frozenset([...]): before protocol 4.
PickleValue Unpickler::items_of(PickleKind kind, const std::vector<PickleValue>& args) {
  std::vector<PickleValue> items;
  if (!args.empty()) {
    const bool list =
        args.size() == 1 && (args[0].is(PickleKind::kList) || args[0].is(PickleKind::kTuple));
    if (!list) {
      fail("damaged: a set of something else than a list");
    }
    charge(kItemCost * args[0].items().size());
    items.assign(args[0].items().begin(), args[0].items().end());
  }
  for (const PickleValue& item : items) {
    check_key(item);
  }
  PickleValue value = kind == PickleKind::kSet ? PickleValue::set(std::move(items))
                                               : PickleValue::frozen_set(std::move(items));
  keep(value);
  return value;
}

/// bytes(), bytearray(), bytearray(b"..."), bytearray("...", "latin-1"): before protocol 5.
PickleValue Unpickler::bytes_of(PickleKind kind, const std::vector<PickleValue>& args) {
  std::string content;
  if (args.size() == 2) {
    content = encode(args).as_text();
  } else if (args.size() == 1 && args[0].is(PickleKind::kBytes)) {
    content = args[0].as_text();
  } else if (!args.empty()) {
    fail("damaged: bytes of something else than bytes");
  }
  charge(content.size());
  return kind == PickleKind::kBytes ? PickleValue::bytes(std::move(content))
                                    : PickleValue::byte_array(std::move(content));
}

void Unpickler::build() {
  const PickleValue state = pop();
  const PickleValue& target = top();
  if (target.is(PickleKind::kArray)) {
    charge(static_cast<uint64_t>(build_array(target, state)));
  } else if (target.if_opaque<PickleDtype>() != nullptr) {
    build_dtype(*std::any_cast<PickleDtype>(&PickleNode::as<OpaqueNode>(target).value), state);
  } else if (target.is(PickleKind::kOrderedDict) && state.is(PickleKind::kDict)) {
    PickleNode::as<DictNode>(target).attributes = state;
  } else {
    fail(fmt::format("refused: {} gets the state {}", target.describe(), state.describe()));
  }
}

void Unpickler::push_persistent(const PickleValue& id) {
  std::optional<PickleValue> value;
  if (options_.persistent) {
    value = options_.persistent(id);
  }
  if (!value) {
    fail(fmt::format("refused: an object outside of the pickle, of the id {}", id.describe()));
  }
  keep_if_container(*value);
  push(*std::move(value));
}

}  // namespace argosy::formats
