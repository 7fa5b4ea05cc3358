#include "argosy/transport/hierarchical/wide.h"

#include "argosy/transport/reduce.h"

namespace argosy::transport {
namespace {

bool is_16_bit(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBf16;
}

bool is_integer(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI32 || dtype == DType::kI64;
}

DType wide_type(DType dtype, ReduceOp op) {
  if (is_16_bit(dtype)) {
    return DType::kF32;
  }
  return op == ReduceOp::kAvg && is_integer(dtype) ? DType::kI64 : dtype;
}

template <typename To, typename From, typename Convert>
void convert(const void* from, void* to, int64_t count, Convert one) {
  const auto* const source = static_cast<const From*>(from);
  auto* const target = static_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) {
    target[i] = one(source[i]);
  }
}

void widen(const void* from, DType dtype, void* to, int64_t count) {
  const auto as_i64 = [](auto value) { return static_cast<int64_t>(value); };
  switch (dtype) {
    case DType::kF16:
      return convert<float, uint16_t>(from, to, count, f16_to_f32);
    case DType::kBf16:
      return convert<float, uint16_t>(from, to, count, bf16_to_f32);
    case DType::kI8:
      return convert<int64_t, int8_t>(from, to, count, as_i64);
    case DType::kU8:
      return convert<int64_t, uint8_t>(from, to, count, as_i64);
    case DType::kI32:
      return convert<int64_t, int32_t>(from, to, count, as_i64);
    default:
      return;
  }
}

/// Divided by `ranks` on the way.
void narrow(const void* from, DType dtype, void* to, int64_t count, int ranks) {
  const auto divisor = static_cast<float>(ranks);
  switch (dtype) {
    case DType::kF16:
      return convert<uint16_t, float>(
          from, to, count, [&](float v) { return f32_to_f16(v / divisor); });
    case DType::kBf16:
      return convert<uint16_t, float>(
          from, to, count, [&](float v) { return f32_to_bf16(v / divisor); });
    case DType::kF32:
      return convert<float, float>(from, to, count, [&](float v) { return v / divisor; });
    case DType::kF64:
      return convert<double, double>(
          from, to, count, [&](double v) { return v / static_cast<double>(ranks); });
    case DType::kI8:
      return convert<int8_t, int64_t>(
          from, to, count, [&](int64_t v) { return static_cast<int8_t>(v / ranks); });
    case DType::kU8:
      return convert<uint8_t, int64_t>(
          from, to, count, [&](int64_t v) { return static_cast<uint8_t>(v / ranks); });
    case DType::kI32:
      return convert<int32_t, int64_t>(
          from, to, count, [&](int64_t v) { return static_cast<int32_t>(v / ranks); });
    case DType::kI64:
      return convert<int64_t, int64_t>(from, to, count, [&](int64_t v) { return v / ranks; });
    case DType::kBool:
      return;
  }
}

}  // namespace

Wide::Wide(void* data, int64_t count, DType dtype, ReduceOp op, int ranks)
    : narrow_(data),
      count_(count),
      narrow_dtype_(dtype),
      wanted_(op),
      ranks_(ranks),
      dtype_(wide_type(dtype, op)),
      op_(op == ReduceOp::kAvg ? ReduceOp::kSum : op),
      data_(static_cast<std::byte*>(data)) {
  if (dtype_ != narrow_dtype_) {
    storage_.resize(static_cast<size_t>(bytes_of(count)));
    data_ = storage_.data();
    widen(data, dtype, data_, count);
  }
}

void Wide::finish() {
  if (dtype_ != narrow_dtype_ || wanted_ == ReduceOp::kAvg) {
    narrow(data_, narrow_dtype_, narrow_, count_, wanted_ == ReduceOp::kAvg ? ranks_ : 1);
  }
}

}  // namespace argosy::transport
