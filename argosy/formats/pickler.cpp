#include "argosy/formats/pickler.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <unordered_map>

#include "argosy/base/check.h"
#include "argosy/formats/pickle_node.h"
#include "argosy/formats/pickle_text.h"

namespace argosy::formats {
namespace {

constexpr const char* kWhere = "formats.pickler";
constexpr int kDeepest = 1000;

class Pickler final {
 public:
  std::string run(const PickleValue& value) {
    out_ = "\x80\x02";
    write(value);
    out_ += '.';
    return std::move(out_);
  }

 private:
  void write(const PickleValue& value) {
    const PickleNode* node = PickleNode::of(value);
    if (node == nullptr) {
      write_plain(value);
      return;
    }
    if (const auto known = memo_.find(node); known != memo_.end()) {
      write_memo('h', 'j', known->second);
      return;
    }
    ARGOSY_CHECK(++level_ <= kDeepest, kWhere, "more than {} values inside each other", kDeepest);
    write_node(value);
    --level_;
  }

  void write_plain(const PickleValue& value) {
    switch (value.kind()) {
      case PickleKind::kBool:
        out_ += value.as_bool() ? '\x88' : '\x89';
        return;
      case PickleKind::kInt:
        write_int(value.as_int());
        return;
      case PickleKind::kFloat: {
        const auto bits = std::bit_cast<uint64_t>(value.as_float());
        out_ += 'G';
        for (int shift = 56; shift >= 0; shift -= 8) {
          out_ += static_cast<char>(bits >> shift);
        }
        return;
      }
      default:
        out_ += 'N';
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
        out_ += "\x86R";
        break;
      case PickleKind::kTuple:
        write_tuple(value.items());
        break;
      case PickleKind::kSet:
      case PickleKind::kFrozenSet:
        write_global("__builtin__", value.is(PickleKind::kSet) ? "set" : "frozenset");
        out_ += ']';
        write_items(value.items(), 'e');
        out_ += "\x85R";
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
        out_ += 'R';
        break;
      case PickleKind::kPersistent:
        write(value.persistent_id());
        out_ += 'Q';
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
        out_ += ']';
        remember(value);
        write_items(value.items(), 'e');
        return;
      case PickleKind::kDict:
        out_ += '}';
        remember(value);
        write_entries(value.entries());
        return;
      case PickleKind::kOrderedDict:
        write_global("collections", "OrderedDict");
        out_ += ")R";
        remember(value);
        write_entries(value.entries());
        if (!value.attributes().is_none()) {
          write(value.attributes());
          out_ += 'b';
        }
        return;
      default:
        ARGOSY_CHECK(false, kWhere, "{} cannot be written", value.describe());
    }
  }

  void write_int(int64_t value) {
    if (value >= 0 && value <= 0xff) {
      out_ += 'K';
      write_little_endian(static_cast<uint64_t>(value), 1);
    } else if (value >= 0 && value <= 0xffff) {
      out_ += 'M';
      write_little_endian(static_cast<uint64_t>(value), 2);
    } else if (value >= std::numeric_limits<int32_t>::min() &&
               value <= std::numeric_limits<int32_t>::max()) {
      out_ += 'J';
      write_little_endian(static_cast<uint64_t>(value), 4);
    } else {
      out_ += '\x8a';
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
                 kWhere,
                 "a str of {} bytes is too long",
                 text.size());
    ARGOSY_CHECK(is_utf8(text), kWhere, "a str that is not UTF-8: use PickleValue::bytes");
    out_ += 'X';
    write_little_endian(text.size(), 4);
    out_ += text;
  }

  /// Protocol 2 knows no bytes: they are written as the str of the same character numbers, and a
  /// call that turns it back.
  void write_bytes(std::string_view bytes) {
    if (bytes.empty()) {
      write_global("__builtin__", "bytes");
      out_ += ")R";
      return;
    }
    write_global("_codecs", "encode");
    write_latin1(bytes);
    out_ += "\x86R";
  }

  void write_latin1(std::string_view bytes) {
    write_text(latin1_to_utf8(bytes));
    write_text("latin1");
  }

  void write_tuple(std::span<const PickleValue> items) {
    constexpr std::array<char, 4> kShort{')', '\x85', '\x86', '\x87'};
    if (items.size() >= kShort.size()) {
      out_ += '(';
    }
    for (const PickleValue& item : items) {
      write(item);
    }
    out_ += items.size() < kShort.size() ? kShort[items.size()] : 't';
  }

  void write_items(std::span<const PickleValue> items, char op) {
    if (items.empty()) {
      return;
    }
    out_ += '(';
    for (const PickleValue& item : items) {
      write(item);
    }
    out_ += op;
  }

  void write_entries(std::span<const PickleEntry> entries) {
    if (entries.empty()) {
      return;
    }
    out_ += '(';
    for (const PickleEntry& entry : entries) {
      write(entry.key);
      write(entry.value);
    }
    out_ += 'u';
  }

  void write_global(std::string_view module, std::string_view name) {
    ARGOSY_CHECK(
        module.find('\n') == std::string_view::npos && name.find('\n') == std::string_view::npos,
        kWhere,
        "a global's name has a line break");
    out_.append("c").append(module).append("\n").append(name).append("\n");
  }

  /// _reconstruct(ndarray, (0,), b"b") with the state (1, shape, dtype, False, bytes).
  void write_array(const PickleArray& array) {
    write_global("numpy.core.multiarray", "_reconstruct");
    write_global("numpy", "ndarray");
    out_ += "K";
    out_ += '\0';
    out_ += '\x85';
    write_bytes("b");
    out_ += "\x87R";
    out_ += "(K\x01";
    write_tuple(std::vector<PickleValue>(array.shape.begin(), array.shape.end()));
    write_dtype(array.type);
    out_ += '\x89';
    write_bytes({reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
    out_ += "tb";
  }

  /// dtype("f4", False, True) with the state (3, "<", None, None, None, -1, -1, 0).
  void write_dtype(PickleType type) {
    write_global("numpy", "dtype");
    write_text(type_code(type));
    out_ += "\x89\x88\x87R(K\x03";
    write_text(element_bytes(type) == 1 ? "|" : "<");
    out_ += "NNN";
    write_int(-1);
    write_int(-1);
    write_int(0);
    out_ += "tb";
  }

  void remember(const PickleValue& value) {
    const auto place = static_cast<uint32_t>(memo_.size());
    memo_.emplace(PickleNode::of(value), place);
    write_memo('q', 'r', place);
  }

  void write_memo(char narrow, char wide, uint32_t place) {
    const bool fits = place <= 0xff;
    out_ += fits ? narrow : wide;
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
