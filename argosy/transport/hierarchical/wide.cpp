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

/// Divided by `leaves` on the way.
void narrow(const void* from, DType dtype, void* to, int64_t count, int64_t leaves) {
  const auto divisor = static_cast<float>(leaves);
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
          from, to, count, [&](double v) { return v / static_cast<double>(leaves); });
    case DType::kI8:
      return convert<int8_t, int64_t>(
          from, to, count, [&](int64_t v) { return static_cast<int8_t>(v / leaves); });
    case DType::kU8:
      return convert<uint8_t, int64_t>(
          from, to, count, [&](int64_t v) { return static_cast<uint8_t>(v / leaves); });
    case DType::kI32:
      return convert<int32_t, int64_t>(
          from, to, count, [&](int64_t v) { return static_cast<int32_t>(v / leaves); });
    case DType::kI64:
      return convert<int64_t, int64_t>(from, to, count, [&](int64_t v) { return v / leaves; });
    case DType::kBool:
      return;
  }
}

}  // namespace

Wide::Wide(const TreeBuffers& buffers, bool takes, int64_t count, DType dtype, ReduceOp op)
    : buffers_(buffers),
      takes_(takes),
      count_(count),
      narrow_dtype_(dtype),
      wanted_(op),
      dtype_(wide_type(dtype, op)),
      op_(op == ReduceOp::kAvg ? ReduceOp::kSum : op),
      nodes_(buffers.nodes.begin(), buffers.nodes.end()) {
  const bool widens = dtype_ != narrow_dtype_;
  const bool own_sum = !takes || (widens && nodes_.empty());
  const size_t rows = (widens ? nodes_.size() : 0) + (own_sum ? 1 : 0);
  storage_.resize(rows * static_cast<size_t>(bytes_of(count)));
  std::byte* row = storage_.data();
  for (size_t i = 0; widens && i < nodes_.size(); ++i, row += bytes_of(count)) {
    widen(nodes_[i], dtype, row, count);
    nodes_[i] = row;
  }
  if (own_sum) {
    sum_ = row;
  } else {
    sum_ = widens ? storage_.data() : buffers.sums[0];
  }
}

void Wide::finish() {
  if (takes_ && (dtype_ != narrow_dtype_ || wanted_ == ReduceOp::kAvg)) {
    const int64_t divisor = wanted_ == ReduceOp::kAvg ? buffers_.deal.leaves() : 1;
    narrow(sum_, narrow_dtype_, buffers_.sums[0], count_, divisor);
  }
}

}  // namespace argosy::transport
