#include "tests/conformance/elements.h"

#include <algorithm>

namespace argosy::conformance {

using transport::DType;
using transport::ReduceOp;

namespace {

template <typename T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

bool is_float(DType dtype) {
  return !transport::is_defined(ReduceOp::kBxor, dtype);
}
bool is_unsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kBool;
}

int64_t fold(ReduceOp op, int64_t a, int64_t b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return a + b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kBand:
      return a & b;
    case ReduceOp::kBor:
      return a | b;
    case ReduceOp::kBxor:
      return a ^ b;
  }
  return 0;
}

}  // namespace

std::string encode(DType dtype, double value) {
  const auto whole = static_cast<int64_t>(value);
  switch (dtype) {
    case DType::kF32:
      return bytes_of(static_cast<float>(value));
    case DType::kF64:
      return bytes_of(value);
    case DType::kF16:
      return bytes_of(transport::f32_to_f16(static_cast<float>(value)));
    case DType::kBf16:
      return bytes_of(transport::f32_to_bf16(static_cast<float>(value)));
    case DType::kI8:
      return bytes_of(static_cast<int8_t>(whole));
    case DType::kU8:
      return bytes_of(static_cast<uint8_t>(whole));
    case DType::kI32:
      return bytes_of(static_cast<int32_t>(whole));
    case DType::kI64:
      return bytes_of(whole);
    case DType::kBool:
      return bytes_of(static_cast<uint8_t>(whole != 0 ? 1 : 0));
  }
  return {};
}

int64_t input_value(DType dtype, ReduceOp op, int r, int64_t i) {
  const int64_t turn = r + i % 1009;
  if (dtype == DType::kBool) {
    return (turn * 7 + r * r) % 3 == 0 ? 0 : 1;
  }
  if (op == ReduceOp::kProduct) {
    return turn % 3 == 0 ? 2 : (turn % 3 == 1 && !is_unsigned(dtype) ? -1 : 1);
  }
  const int64_t value = (turn * 5 + r * r) % 11;
  return is_unsigned(dtype) ? value : value - 5;
}

std::string expected(DType dtype, ReduceOp op, int n, int64_t i) {
  ReduceOp wide = op;
  if (dtype == DType::kBool) {  // any and all
    wide = op == ReduceOp::kSum ? ReduceOp::kMax : (op == ReduceOp::kProduct ? ReduceOp::kMin : op);
  }
  int64_t result = input_value(dtype, op, 0, i);
  for (int r = 1; r < n; ++r) {
    result = fold(wide, result, input_value(dtype, op, r, i));
  }
  if (op != ReduceOp::kAvg) {
    return encode(dtype, static_cast<double>(result));
  }
  if (!is_float(dtype)) {
    const auto rounded_towards_zero = result / n;
    return encode(dtype, static_cast<double>(rounded_towards_zero));
  }
  return dtype == DType::kF64 ? encode(dtype, static_cast<double>(result) / n)
                              : encode(dtype, static_cast<float>(result) / static_cast<float>(n));
}

}  // namespace argosy::conformance
