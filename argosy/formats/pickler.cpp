#include "argosy/formats/pickler.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <initializer_list>
#include <limits>
#include <unordered_map>

#include "argosy/base/check.h"
#include "argosy/formats/pickle_node.h"
#include "argosy/formats/pickle_ops.h"
#include "argosy/formats/pickle_text.h"

namespace argosy::formats {
namespace {

constexpr int kDeepest = 1000;
constexpr uint8_t kProtocol = 2;

class Pickler final {
 public:
  std::string run(const PickleValue& value) {
    put({kOpProto, kProtocol});
    write(value);
    put({kOpStop});
    return std::move(out_);
  }

 private:
  void put(std::initializer_list<uint8_t> ops) { out_.append(ops.begin(), ops.end()); }

  void write(const PickleValue& value) {
    const PickleNode* node = PickleNode::of(value);
    if (node == nullptr) {
      write_plain(value);
      return;
    }
    if (const auto known = memo_.find(node); known != memo_.end()) {
      write_memo(kOpBinGet, kOpLongBinGet, known->second);
      return;
    }
    ARGOSY_CHECK(
        ++level_ <= kDeepest, "formats.pickler", "more than {} values inside each other", kDeepest);
    write_node(value);
    --level_;
  }

  void write_plain(const PickleValue& value) {
    switch (value.kind()) {
      case PickleKind::kBool:
        put({value.as_bool() ? kOpNewTrue : kOpNewFalse});
        return;
      case PickleKind::kInt:
        write_int(value.as_int());
        return;
      case PickleKind::kFloat: {
        const auto bits = std::bit_cast<uint64_t>(value.as_float());
        put({kOpBinFloat});
        for (int shift = 56; shift >= 0; shift -= 8) {
          out_ += static_cast<char>(bits >> shift);
        }
        return;
      }
      default:
        put({kOpNone});
    }
  }

  void write_node(const PickleValue& value) {
    switch (value.kind()) {
      case PickleKind::kString:
        write_text(value.as_string());
        break;
      case PickleKind::kBytes:
        write_bytes(value.as_text());
        break;
      case PickleKind::kByteArray:
        write_global("__builtin__", "bytearray");
        write_latin1(value.as_text());
        put({kOpTuple2, kOpReduce});
        break;
      case PickleKind::kTuple:
        write_tuple(value.items());
        break;
      case PickleKind::kSet:
      case PickleKind::kFrozenSet:
        write_global("__builtin__", value.is(PickleKind::kSet) ? "set" : "frozenset");
        put({kOpEmptyList});
        write_items(value.items());
        put({kOpTuple1, kOpReduce});
        break;
      case PickleKind::kArray:
        write_array(value.as_array());
        break;
      case PickleKind::kGlobal:
        write_global(value.as_global().module, value.as_global().name);
        break;
      case PickleKind::kCall:
        write(value.as_call().callable);
        write_tuple(value.as_call().args);
        put({kOpReduce});
        break;
      case PickleKind::kPersistent:
        write(value.persistent_id());
        put({kOpBinPersId});
        return;  // torch's own pickler does not remember them either
      default:
        write_filled(value);
        return;
    }
    remember(value);
  }

  /// Lists and dicts are remembered empty, before what they hold.
  void write_filled(const PickleValue& value) {
    switch (value.kind()) {
      case PickleKind::kList:
        put({kOpEmptyList});
        remember(value);
        write_items(value.items());
        return;
      case PickleKind::kDict:
        put({kOpEmptyDict});
        remember(value);
        write_entries(value.entries());
        return;
      case PickleKind::kOrderedDict:
        write_global("collections", "OrderedDict");
        put({kOpEmptyTuple, kOpReduce});
        remember(value);
        write_entries(value.entries());
        if (!value.attributes().is_none()) {
          write(value.attributes());
          put({kOpBuild});
        }
        return;
      default:
        ARGOSY_CHECK(false, "formats.pickler", "{} cannot be written", value.describe());
    }
  }

  void write_int(int64_t value) {
    if (value >= 0 && value <= 0xff) {
      put({kOpBinInt1});
      write_little_endian(static_cast<uint64_t>(value), 1);
    } else if (value >= 0 && value <= 0xffff) {
      put({kOpBinInt2});
      write_little_endian(static_cast<uint64_t>(value), 2);
    } else if (value >= std::numeric_limits<int32_t>::min() &&
               value <= std::numeric_limits<int32_t>::max()) {
      put({kOpBinInt});
      write_little_endian(static_cast<uint64_t>(value), 4);
    } else {
      put({kOpLong1});
      write_little_endian(sizeof(value), 1);
      write_little_endian(static_cast<uint64_t>(value), sizeof(value));
    }
  }

  void write_little_endian(uint64_t value, int width) {
    for (int i = 0; i < width; ++i) {
      out_ += static_cast<char>(value >> (8 * i));
    }
  }

  void write_text(std::string_view text) {
    ARGOSY_CHECK(text.size() <= std::numeric_limits<uint32_t>::max(),
                 "formats.pickler",
                 "a str of {} bytes is too long",
                 text.size());
    ARGOSY_CHECK(
        is_utf8(text), "formats.pickler", "a str that is not UTF-8: use PickleValue::bytes");
    put({kOpBinUnicode});
    write_little_endian(text.size(), 4);
    out_ += text;
  }

  /// Protocol 2 knows no bytes: they are written as the str of the same character numbers, and a
  /// call that turns it back.
  void write_bytes(std::string_view bytes) {
    if (bytes.empty()) {
      write_global("__builtin__", "bytes");
      put({kOpEmptyTuple, kOpReduce});
      return;
    }
    write_global("_codecs", "encode");
    write_latin1(bytes);
    put({kOpTuple2, kOpReduce});
  }

  void write_latin1(std::string_view bytes) {
    write_text(latin1_to_utf8(bytes));
    write_text("latin1");
  }

  void write_tuple(std::span<const PickleValue> items) {
    constexpr std::array<PickleOp, 4> kShort{kOpEmptyTuple, kOpTuple1, kOpTuple2, kOpTuple3};
    if (items.size() >= kShort.size()) {
      put({kOpMark});
    }
    for (const PickleValue& item : items) {
      write(item);
    }
    put({items.size() < kShort.size() ? kShort[items.size()] : kOpTuple});
  }

  void write_items(std::span<const PickleValue> items) {
    if (items.empty()) {
      return;
    }
    put({kOpMark});
    for (const PickleValue& item : items) {
      write(item);
    }
    put({kOpAppends});
  }

  void write_entries(std::span<const PickleEntry> entries) {
    if (entries.empty()) {
      return;
    }
    put({kOpMark});
    for (const PickleEntry& entry : entries) {
      write(entry.key);
      write(entry.value);
    }
    put({kOpSetItems});
  }

  void write_global(std::string_view module, std::string_view name) {
    ARGOSY_CHECK(
        module.find('\n') == std::string_view::npos && name.find('\n') == std::string_view::npos,
        "formats.pickler",
        "a global's name has a line break");
    put({kOpGlobal});
    out_.append(module).append("\n").append(name).append("\n");
  }

  /// _reconstruct(ndarray, (0,), b"b") with the state (1, shape, dtype, False, bytes).
  void write_array(const PickleArray& array) {
    write_global("numpy.core.multiarray", "_reconstruct");
    write_global("numpy", "ndarray");
    write_int(0);
    put({kOpTuple1});
    write_bytes("b");
    put({kOpTuple3, kOpReduce, kOpMark});
    write_int(1);
    write_tuple(std::vector<PickleValue>(array.shape.begin(), array.shape.end()));
    write_dtype(array.type);
    put({kOpNewFalse});
    write_bytes({reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
    put({kOpTuple, kOpBuild});
  }

  /// dtype("f4", False, True) with the state (3, "<", None, None, None, -1, -1, 0).
  void write_dtype(PickleType type) {
    write_global("numpy", "dtype");
    write_text(type_code(type));
    put({kOpNewFalse, kOpNewTrue, kOpTuple3, kOpReduce, kOpMark});
    write_int(3);
    write_text(element_bytes(type) == 1 ? "|" : "<");
    put({kOpNone, kOpNone, kOpNone});
    write_int(-1);
    write_int(-1);
    write_int(0);
    put({kOpTuple, kOpBuild});
  }

  void remember(const PickleValue& value) {
    const auto place = static_cast<uint32_t>(memo_.size());
    memo_.emplace(PickleNode::of(value), place);
    write_memo(kOpBinPut, kOpLongBinPut, place);
  }

  void write_memo(PickleOp narrow, PickleOp wide, uint32_t place) {
    const bool fits = place <= 0xff;
    put({fits ? narrow : wide});
    write_little_endian(place, fits ? 1 : 4);
  }

  std::string out_;
  std::unordered_map<const PickleNode*, uint32_t> memo_;
  int level_ = 0;
};

}  // namespace

std::string pickle(const PickleValue& value) {
  return Pickler().run(value);
}

}  // namespace argosy::formats
