#include "argosy/formats/pickle_numpy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "argosy/formats/pickle_node.h"
#include "argosy/formats/pickle_problem.h"
#include "argosy/formats/shown_name.h"

namespace argosy::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays would need another swap");

constexpr size_t kMostDimensions = 64;  // numpy 2's

void need(bool condition, std::string_view what) {
  if (!condition) {
    throw PickleProblem{std::string(what)};
  }
}

bool is_text(const PickleValue& value) {
  return value.is(PickleKind::kString) || value.is(PickleKind::kBytes);
}

/// A byte order sign; '|' and '=' are this machine's.
bool is_big_endian(std::string_view order) {
  need(order == "<" || order == ">" || order == "|" || order == "=",
       fmt::format("a dtype's byte order is '{}': expected one of < > | =", shown_name(order)));
  return order == ">";
}

const PickleDtype& dtype_of(const PickleValue& value) {
  const auto* dtype = value.if_opaque<PickleDtype>();
  if (dtype == nullptr) {
    throw PickleProblem{fmt::format("expected a numpy.dtype, got {}", value.describe())};
  }
  return *dtype;
}

std::vector<int64_t> shape_of(const PickleValue& value) {
  need(value.is(PickleKind::kTuple) && value.items().size() <= kMostDimensions,
       fmt::format("an array's shape: expected a tuple of at most {} ints, got {}",
                   kMostDimensions,
                   value.describe()));
  std::vector<int64_t> shape;
  for (const PickleValue& dim : value.items()) {
    need(dim.is(PickleKind::kInt) && dim.as_int() >= 0,
         fmt::format("an array's shape has {} for a dimension", dim.describe()));
    shape.push_back(dim.as_int());
  }
  return shape;
}

/// Errors: shape and bytes do not fit.
void check_size(const PickleDtype& dtype, const std::vector<int64_t>& shape, size_t size) {
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  int64_t expected = empty ? 0 : element_bytes(dtype.type);
  bool overflow = false;
  for (const int64_t dim : shape) {
    overflow = overflow || (!empty && __builtin_mul_overflow(expected, dim, &expected));
  }
  need(!overflow && expected == static_cast<int64_t>(size),
       fmt::format("an array of shape ({}) and type {} does not fit its {} bytes",
                   fmt::join(shape, ", "),
                   type_code(dtype.type),
                   size));
}

void swap_bytes(std::string& bytes, size_t width) {
  for (size_t i = 0; i < bytes.size(); i += width) {
    std::reverse(bytes.begin() + static_cast<int64_t>(i),
                 bytes.begin() + static_cast<int64_t>(i + width));
  }
}

/// Column-major elements in row-major order.
std::string from_fortran(const std::string& bytes,
                         const std::vector<int64_t>& shape,
                         size_t width) {
  const size_t dims = shape.size();
  std::vector<size_t> stride(dims, width);
  for (size_t d = 1; d < dims; ++d) {
    stride[d] = stride[d - 1] * static_cast<size_t>(shape[d - 1]);
  }
  std::string rows(bytes.size(), '\0');
  std::vector<int64_t> index(dims, 0);
  size_t from = 0;
  for (size_t to = 0; to < rows.size(); to += width) {
    std::memcpy(rows.data() + to, bytes.data() + from, width);
    for (size_t d = dims; d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) {
        break;
      }
      from -= stride[d] * static_cast<size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return rows;
}

enum class Order { kRows, kColumns };

/// Shares `data` where it is as we want it; else `taken` is the size of the copy.
PickleArray to_array(const PickleDtype& dtype,
                     std::vector<int64_t> shape,
                     const PickleValue& data,
                     Order order,
                     int64_t& taken) {
  std::shared_ptr<const std::string> bytes = PickleNode::as<TextNode>(data).text;
  check_size(dtype, shape, bytes->size());
  const auto width = static_cast<size_t>(element_bytes(dtype.type));
  const bool swap = dtype.big_endian && width > 1;
  const bool turn = order == Order::kColumns && shape.size() > 1 && !bytes->empty();
  taken = 0;
  if (swap || turn) {
    std::string changed = turn ? from_fortran(*bytes, shape, width) : *bytes;
    if (swap) {
      swap_bytes(changed, width);
    }
    taken = static_cast<int64_t>(changed.size());
    bytes = std::make_shared<const std::string>(std::move(changed));
  }
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(bytes->data()),
                                      bytes->size());
  return {dtype.type, std::move(shape), span, bytes};
}

template <typename T>
T number(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

PickleValue to_value(PickleType type, const std::string& bytes) {
  switch (type) {
    case PickleType::kBool:
      return bytes[0] != 0;
    case PickleType::kU8:
      return number<uint8_t>(bytes);
    case PickleType::kI8:
      return number<int8_t>(bytes);
    case PickleType::kU16:
      return number<uint16_t>(bytes);
    case PickleType::kI16:
      return number<int16_t>(bytes);
    case PickleType::kU32:
      return number<uint32_t>(bytes);
    case PickleType::kI32:
      return number<int32_t>(bytes);
    case PickleType::kU64:
      need(number<int64_t>(bytes) >= 0, "a numpy number of type u8 beyond 63 bits");
      return number<int64_t>(bytes);
    case PickleType::kI64:
      return number<int64_t>(bytes);
    case PickleType::kF32:
      return static_cast<double>(number<float>(bytes));
    case PickleType::kF64:
      return number<double>(bytes);
  }
  return {};
}

}  // namespace

PickleValue make_dtype(const PickleArgs& args) {
  need(!args.empty() && is_text(args[0]), "numpy.dtype: expected the code of a type");
  std::string_view code = args[0].as_text();
  PickleDtype dtype;
  if (code.size() == 3) {
    dtype.big_endian = is_big_endian(code.substr(0, 1));
    code.remove_prefix(1);
  }
  for (const PickleType type : {PickleType::kBool,
                                PickleType::kU8,
                                PickleType::kI8,
                                PickleType::kU16,
                                PickleType::kI16,
                                PickleType::kU32,
                                PickleType::kI32,
                                PickleType::kU64,
                                PickleType::kI64,
                                PickleType::kF32,
                                PickleType::kF64}) {
    if (type_code(type) == code) {
      dtype.type = type;
      return PickleValue::opaque(dtype);
    }
  }
  throw PickleProblem{fmt::format("numpy.dtype '{}' is not one of b1 u1 i1 u2 i2 u4 i4 u8 i8 f4 f8",
                                  shown_name(code))};
}

void build_dtype(PickleDtype& dtype, const PickleValue& state) {
  need(state.is(PickleKind::kTuple) && state.items().size() >= 5,
       "a numpy.dtype's state: expected a tuple of 8");
  const std::span<const PickleValue> items = state.items();
  need(is_text(items[1]), "a numpy.dtype's state: expected its byte order");
  need(items[2].is_none() && items[3].is_none() && items[4].is_none(),
       "a numpy.dtype with fields or of arrays");
  dtype.big_endian = is_big_endian(items[1].as_text());
}

PickleValue make_array(const PickleArgs& args) {
  const bool plain = args.size() == 3 && args[0].is(PickleKind::kGlobal) &&
                     args[0].as_global().module == "numpy" && args[0].as_global().name == "ndarray";
  need(plain, "numpy's _reconstruct: expected numpy.ndarray and two more arguments");
  PickleValue value = PickleValue::array({});
  PickleNode::as<ArrayNode>(value).complete = false;
  return value;
}

int64_t build_array(const PickleValue& array, const PickleValue& state) {
  auto& node = PickleNode::as<ArrayNode>(array);
  need(!node.complete, "an array gets its content twice");
  need(state.is(PickleKind::kTuple) && state.items().size() == 5,
       "an array's state: expected a tuple of 5");
  const std::span<const PickleValue> items = state.items();
  need(items[3].is(PickleKind::kBool) || items[3].is(PickleKind::kInt),
       "an array's state: expected its order");
  need(items[4].is(PickleKind::kBytes),
       "an array's content: expected bytes (arrays of objects are not read)");
  const bool columns = items[3].is(PickleKind::kBool) ? items[3].as_bool() : items[3].as_int() != 0;
  int64_t taken = 0;
  node.array = to_array(dtype_of(items[2]),
                        shape_of(items[1]),
                        items[4],
                        columns ? Order::kColumns : Order::kRows,
                        taken);
  node.complete = true;
  return taken;
}

PickleValue array_from_buffer(const PickleArgs& args, int64_t& taken) {
  need(args.size() == 4 && (args[0].is(PickleKind::kBytes) || args[0].is(PickleKind::kByteArray)) &&
           is_text(args[3]),
       "numpy's _frombuffer: expected bytes, dtype, shape and order");
  const std::string_view order = args[3].as_text();
  need(order == "C" || order == "F", "numpy's _frombuffer: expected the order C or F");
  return PickleValue::array(to_array(dtype_of(args[1]),
                                     shape_of(args[2]),
                                     args[0],
                                     order == "F" ? Order::kColumns : Order::kRows,
                                     taken));
}

PickleValue make_scalar(const PickleArgs& args) {
  need(args.size() == 2 && args[1].is(PickleKind::kBytes),
       "numpy's scalar: expected a dtype and bytes");
  const PickleDtype& dtype = dtype_of(args[0]);
  std::string bytes(args[1].as_text());
  check_size(dtype, {}, bytes.size());
  if (dtype.big_endian) {
    std::reverse(bytes.begin(), bytes.end());
  }
  return to_value(dtype.type, bytes);
}

}  // namespace argosy::formats
