#include "argosy/formats/pickle.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/formats/pickle_input.h"
#include "argosy/formats/pickle_objects.h"
#include "argosy/formats/pickle_ops.h"
#include "argosy/formats/pickle_problem.h"
#include "argosy/formats/pickle_stack.h"
#include "argosy/formats/pickle_tree.h"

namespace argosy::formats {
namespace {

constexpr uint64_t kOldestProtocol = 2;
constexpr uint64_t kNewestProtocol = 5;
constexpr std::string_view kWriteAnew =
    "Write the file again with pickle.dump(value, file, protocol=2)";

/// Operations that protocols 0 and 1 alone write: numbers, texts and places of the memo as lines.
constexpr std::string_view kOldOperations = "FILPSVdgilp";

/// Errors: UsageError.
const UnpickleOptions& checked(const UnpickleOptions& options) {
  constexpr int32_t kDeepest = 1000;  // readers, and the end of a tree, go down by recursion
  ARGOSY_CHECK(options.depth > 0 && options.depth <= kDeepest,
               "formats.pickle",
               "UnpickleOptions::depth must be 1 to {}, got {}",
               kDeepest,
               options.depth);
  ARGOSY_CHECK(options.memo > 0, "formats.pickle", "UnpickleOptions::memo must be positive");
  ARGOSY_CHECK(
      options.memory_bytes > 0, "formats.pickle", "UnpickleOptions::memory_bytes must be positive");
  return options;
}

/// The machine that a pickle is a program for. It knows the operations that build values; the
/// others, and every name but a few, are refused.
class Unpickler final {
 public:
  Unpickler(std::span<const uint8_t> bytes, const UnpickleOptions& options)
      : path_(checked(options).path),
        input_(bytes),
        tree_({.size = bytes.size(), .memory_bytes = options.memory_bytes, .depth = options.depth}),
        stack_(tree_, options.memo),
        objects_(options, tree_) {}

  PickleValue run() {
    try {
      for (uint8_t op = next(); op != kOpStop; op = next()) {
        carry_out(op);
      }
      PickleValue value = stack_.pop();
      if (!stack_.empty()) {
        throw PickleProblem{"values are left over at the pickle's end"};
      }
      tree_.finish(value);
      return value;
    } catch (const PickleProblem& problem) {
      throw DataError("formats.pickle", problem.what, {path_, static_cast<int64_t>(op_at_)});
    }
  }

  [[nodiscard]] size_t consumed() const { return input_.at(); }

 private:
  uint8_t next() {
    op_at_ = input_.at();
    return input_.take(1)[0];
  }

  void carry_out(uint8_t op) {
    for (const auto& group :
         {&Unpickler::number, &Unpickler::text, &Unpickler::container, &Unpickler::object}) {
      if (std::optional<PickleValue> value = (this->*group)(op)) {
        stack_.push(*std::move(value));
        return;
      }
    }
    if (!fill(op) && !move(op)) {
      refuse(op);
    }
  }

  void append(PickleKind kind, std::vector<PickleValue> items) {
    tree_.append(stack_.top(), kind, std::move(items));
  }
  void set_items(std::vector<PickleValue> values) {
    tree_.set_items(stack_.top(), std::move(values));
  }

  // The value that `op` makes, if it is one of the group.
  std::optional<PickleValue> number(uint8_t op);
  std::optional<PickleValue> text(uint8_t op);
  std::optional<PickleValue> container(uint8_t op);
  std::optional<PickleValue> object(uint8_t op);
  // Carries out `op` if it is one of the group; false: it is not.
  bool fill(uint8_t op);
  bool move(uint8_t op);
  [[noreturn]] void refuse(uint8_t op);

  const std::string& path_;
  PickleInput input_;
  PickleTree tree_;
  PickleStack stack_;
  PickleObjects objects_;
  size_t op_at_ = 0;  // of the operation that is carried out
};

std::optional<PickleValue> Unpickler::number(uint8_t op) {
  switch (op) {
    case kOpNone:
      return PickleValue();
    case kOpNewTrue:
      return PickleValue(true);
    case kOpNewFalse:
      return PickleValue(false);
    case kOpBinInt1:
      return PickleValue(input_.little_endian(1));
    case kOpBinInt2:
      return PickleValue(input_.little_endian(2));
    case kOpBinInt:
      return PickleValue(static_cast<int32_t>(input_.little_endian(4)));
    case kOpLong1:
      return PickleValue(input_.long_int(1));
    case kOpLong4:
      return PickleValue(input_.long_int(4));
    case kOpBinFloat:
      return PickleValue(input_.big_endian_double());
    default:
      return std::nullopt;
  }
}

std::optional<PickleValue> Unpickler::text(uint8_t op) {
  switch (op) {
    case kOpShortBinUnicode:
      return tree_.text(PickleKind::kString, input_.text(1));
    case kOpBinUnicode:
      return tree_.text(PickleKind::kString, input_.text(4));
    case kOpBinUnicode8:
      return tree_.text(PickleKind::kString, input_.text(8));
    case kOpShortBinString:
    case kOpShortBinBytes:
      return tree_.text(PickleKind::kBytes, input_.text(1));
    case kOpBinString:
    case kOpBinBytes:
      return tree_.text(PickleKind::kBytes, input_.text(4));
    case kOpBinBytes8:
      return tree_.text(PickleKind::kBytes, input_.text(8));
    case kOpByteArray8:
      return tree_.text(PickleKind::kByteArray, input_.text(8));
    default:
      return std::nullopt;
  }
}

std::optional<PickleValue> Unpickler::container(uint8_t op) {
  switch (op) {
    case kOpEmptyTuple:
      return tree_.tuple({});
    case kOpTuple1:
      return tree_.tuple(stack_.pop(1));
    case kOpTuple2:
      return tree_.tuple(stack_.pop(2));
    case kOpTuple3:
      return tree_.tuple(stack_.pop(3));
    case kOpTuple:
      return tree_.tuple(stack_.pop_to_mark());
    case kOpEmptyList:
      return tree_.keep(PickleValue::list({}));
    case kOpEmptyDict:
      return tree_.keep(PickleValue::dict({}));
    case kOpEmptySet:
      return tree_.keep(PickleValue::set({}));
    case kOpFrozenSet: {
      PickleValue set = tree_.keep(PickleValue::frozen_set({}));
      tree_.append(set, PickleKind::kFrozenSet, stack_.pop_to_mark());
      return set;
    }
    default:
      return std::nullopt;
  }
}

std::optional<PickleValue> Unpickler::object(uint8_t op) {
  switch (op) {
    case kOpGlobal: {
      const std::string_view module = input_.line();
      return objects_.global(module, input_.line());
    }
    case kOpStackGlobal: {
      const PickleValue name = stack_.pop();
      const PickleValue module = stack_.pop();
      if (!name.is(PickleKind::kString) || !module.is(PickleKind::kString)) {
        throw PickleProblem{"damaged: a global's name is no str"};
      }
      return objects_.global(module.as_string(), name.as_string());
    }
    case kOpReduce: {
      const PickleValue args = stack_.pop();
      return objects_.call(stack_.pop(), args);
    }
    case kOpBinPersId:
      return objects_.persistent(stack_.pop());
    default:
      return std::nullopt;
  }
}

bool Unpickler::fill(uint8_t op) {
  switch (op) {
    case kOpAppend:
      append(PickleKind::kList, stack_.pop(1));
      return true;
    case kOpAppends:
      append(PickleKind::kList, stack_.pop_to_mark());
      return true;
    case kOpAddItems:
      append(PickleKind::kSet, stack_.pop_to_mark());
      return true;
    case kOpSetItem:
      set_items(stack_.pop(2));
      return true;
    case kOpSetItems:
      set_items(stack_.pop_to_mark());
      return true;
    case kOpBuild: {
      const PickleValue state = stack_.pop();
      objects_.build(stack_.top(), state);
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::move(uint8_t op) {
  switch (op) {
    case kOpMark:
      stack_.mark();
      return true;
    case kOpPop:
      stack_.drop();
      return true;
    case kOpPopMark:
      (void)stack_.pop_to_mark();
      return true;
    case kOpDup:
      stack_.push(stack_.top());
      return true;
    case kOpBinPut:
      stack_.put(input_.little_endian(1));
      return true;
    case kOpLongBinPut:
      stack_.put(input_.little_endian(4));
      return true;
    case kOpMemoize:
      stack_.memoize();
      return true;
    case kOpBinGet:
      stack_.push(stack_.get(input_.little_endian(1)));
      return true;
    case kOpLongBinGet:
      stack_.push(stack_.get(input_.little_endian(4)));
      return true;
    case kOpProto:
      if (const uint64_t protocol = input_.little_endian(1);
          protocol < kOldestProtocol || protocol > kNewestProtocol) {
        throw PickleProblem{fmt::format("protocol {}: expected {} to {}. {}",
                                        protocol,
                                        kOldestProtocol,
                                        kNewestProtocol,
                                        kWriteAnew)};
      }
      return true;
    case kOpFrame:
      if (const uint64_t size = input_.little_endian(8); size > input_.left()) {
        throw PickleProblem{fmt::format(
            "truncated or damaged: a frame of {} bytes, {} are left", size, input_.left())};
      }
      return true;
    default:
      return false;
  }
}

void Unpickler::refuse(uint8_t op) {
  switch (op) {
    case kOpObj: {
      const std::vector<PickleValue> values = stack_.pop_to_mark();
      throw PickleProblem{fmt::format("refused: it makes an instance of {}",
                                      values.empty() ? "nothing" : values.front().describe())};
    }
    case kOpNewObjEx:
      (void)stack_.pop();
      [[fallthrough]];
    case kOpNewObj:
      (void)stack_.pop();
      throw PickleProblem{
          fmt::format("refused: it makes an instance of {}", stack_.pop().describe())};
    case kOpExt1:
    case kOpExt2:
    case kOpExt4:
      throw PickleProblem{"refused: it uses a number of Python's extension registry for a name"};
    case kOpNextBuffer:
    case kOpReadonlyBuffer:
      throw PickleProblem{"refused: it takes a buffer from outside of the pickle"};
    default:
      break;
  }
  if (kOldOperations.find(static_cast<char>(op)) != std::string_view::npos) {
    throw PickleProblem{
        fmt::format("operation '{}' belongs to pickle's protocols 0 and 1: expected protocol {} to "
                    "{}. {}",
                    static_cast<char>(op),
                    kOldestProtocol,
                    kNewestProtocol,
                    kWriteAnew)};
  }
  throw PickleProblem{
      fmt::format("byte {:02x} is no operation of a pickle: damaged, or not a pickle", op)};
}

}  // namespace

PickleValue unpickle(std::span<const uint8_t> bytes, const UnpickleOptions& options) {
  const size_t size = bytes.size();
  PickleValue value = unpickle_front(bytes, options);
  if (!bytes.empty()) {
    throw DataError("formats.pickle",
                    "trailing bytes after the pickle's end. The file is damaged or two were joined",
                    {options.path, static_cast<int64_t>(size - bytes.size())});
  }
  return value;
}

PickleValue unpickle_front(std::span<const uint8_t>& bytes, const UnpickleOptions& options) {
  Unpickler unpickler(bytes, options);
  PickleValue value = unpickler.run();
  bytes = bytes.subspan(unpickler.consumed());
  return value;
}

}  // namespace argosy::formats
