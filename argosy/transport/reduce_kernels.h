// The kernels of reduce(), compiled once per instruction set: a unit defines
// ARGOSY_KERNELS as the name of its set and includes this file. Everything is in an anonymous
// namespace, so that no AVX code can stand in for the baseline's at link time.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "argosy/transport/float16.h"
#include "argosy/transport/reduce_dispatch.h"

namespace argosy::transport {
// NOLINTBEGIN(misc-definitions-in-headers): a copy for each unit is what is wanted
namespace {

/// Elements folded at a time: the accumulator (16 KiB at most) stays in the first-level cache.
constexpr int64_t kBlock = 2048;

/// The type of an element in memory, and the type in which it is folded.
template <typename T, typename A = T>
struct Plain {
  using Stored = T;
  using Acc = A;
  static Acc load(Stored v) { return static_cast<Acc>(v); }
  static Stored store(Acc v) { return static_cast<Stored>(v); }
};
/// i64 for averages: the sum wraps, the division is signed.
struct I64Average {
  using Stored = int64_t;
  struct Acc {
    uint64_t sum;
    Acc() = default;
    explicit Acc(uint64_t s) : sum(s) {}
    explicit Acc(int n) : sum(static_cast<uint64_t>(n)) {}
    friend Acc operator+(Acc a, Acc b) { return Acc(a.sum + b.sum); }
    friend Acc operator/(Acc a, Acc b) {
      return Acc(static_cast<uint64_t>(static_cast<int64_t>(a.sum) / static_cast<int64_t>(b.sum)));
    }
  };
  static Acc load(int64_t v) { return Acc(static_cast<uint64_t>(v)); }
  static int64_t store(Acc v) { return static_cast<int64_t>(v.sum); }
};
struct F16 {
  using Stored = uint16_t;
  using Acc = float;
  static float load(uint16_t v) { return f16_value(v); }
  static uint16_t store(float v) { return f16_bits(v); }
};
struct Bf16 {
  using Stored = uint16_t;
  using Acc = float;
  static float load(uint16_t v) { return bf16_value(v); }
  static uint16_t store(float v) { return bf16_bits(v); }
};
struct Bool {
  using Stored = uint8_t;
  using Acc = uint8_t;
  static uint8_t load(uint8_t v) { return v != 0 ? 1 : 0; }
  static uint8_t store(uint8_t v) { return v; }
};

struct Sum {
  template <typename A>
  static A fold(A a, A b) {
    return static_cast<A>(a + b);
  }
};
struct Product {
  template <typename A>
  static A fold(A a, A b) {
    return static_cast<A>(a * b);
  }
};
// A comparison with NaN is false: a NaN `b` is taken by the last branch, a NaN `a` by the first.
struct Min {
  template <typename A>
  static A fold(A a, A b) {
    if constexpr (std::is_floating_point_v<A>) {
      return a != a ? a : (a < b ? a : b);
    }
    return a < b ? a : b;
  }
};
struct Max {
  template <typename A>
  static A fold(A a, A b) {
    if constexpr (std::is_floating_point_v<A>) {
      return a != a ? a : (a > b ? a : b);
    }
    return a > b ? a : b;
  }
};
struct Band {
  template <typename A>
  static A fold(A a, A b) {
    return static_cast<A>(a & b);
  }
};
struct Bor {
  template <typename A>
  static A fold(A a, A b) {
    return static_cast<A>(a | b);
  }
};
struct Bxor {
  template <typename A>
  static A fold(A a, A b) {
    return static_cast<A>(a ^ b);
  }
};

/// Returns the i-th element of memory that may be unaligned.
template <typename T>
T element(const std::byte* memory, int64_t i) {
  T value;
  std::memcpy(&value, memory + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename E, typename Op, bool kAverage>
void fold_block(const void* const* sources, int n, std::byte* to, int64_t begin, int64_t count) {
  using Stored = typename E::Stored;
  using Acc = typename E::Acc;
  const auto at = [&](int s) {
    return static_cast<const std::byte*>(sources[s]) + begin * static_cast<int64_t>(sizeof(Stored));
  };
  alignas(64) Acc acc[kBlock];
  const std::byte* first = at(0);
  if (n == 1) {
    for (int64_t i = 0; i < count; ++i) {
      acc[i] = E::load(element<Stored>(first, i));
    }
  } else {
    const std::byte* second = at(1);
    for (int64_t i = 0; i < count; ++i) {
      acc[i] = Op::fold(E::load(element<Stored>(first, i)), E::load(element<Stored>(second, i)));
    }
  }
  for (int s = 2; s < n; ++s) {
    const std::byte* source = at(s);
    for (int64_t i = 0; i < count; ++i) {
      acc[i] = Op::fold(acc[i], E::load(element<Stored>(source, i)));
    }
  }
  to += begin * static_cast<int64_t>(sizeof(Stored));
  for (int64_t i = 0; i < count; ++i) {
    Acc result = acc[i];
    if constexpr (kAverage) {
      result = static_cast<Acc>(result / static_cast<Acc>(n));
    }
    const Stored stored = E::store(result);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
  }
}

template <typename E, typename Op, bool kAverage = false>
void fold(const void* const* sources, int n, void* to, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = count - begin < kBlock ? count - begin : kBlock;
    fold_block<E, Op, kAverage>(sources, n, static_cast<std::byte*>(to), begin, length);
  }
}

template <typename E>
Kernel float_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return fold<E, Sum>;
    case ReduceOp::kAvg:
      return fold<E, Sum, true>;
    case ReduceOp::kMin:
      return fold<E, Min>;
    case ReduceOp::kMax:
      return fold<E, Max>;
    case ReduceOp::kProduct:
      return fold<E, Product>;
    default:
      return nullptr;
  }
}

/// Sums and products of signed integers wrap, which only unsigned arithmetic may do.
template <typename T, typename Average = Plain<T, int64_t>>
Kernel integer_kernel(ReduceOp op) {
  using Unsigned = Plain<std::make_unsigned_t<T>>;
  switch (op) {
    case ReduceOp::kSum:
      return fold<Unsigned, Sum>;
    case ReduceOp::kAvg:
      return fold<Average, Sum, true>;
    case ReduceOp::kMin:
      return fold<Plain<T>, Min>;
    case ReduceOp::kMax:
      return fold<Plain<T>, Max>;
    case ReduceOp::kProduct:
      return fold<Unsigned, Product>;
    case ReduceOp::kBand:
      return fold<Unsigned, Band>;
    case ReduceOp::kBor:
      return fold<Unsigned, Bor>;
    case ReduceOp::kBxor:
      return fold<Unsigned, Bxor>;
  }
  return nullptr;
}

Kernel bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBor:
      return fold<Bool, Bor>;
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBand:
      return fold<Bool, Band>;
    case ReduceOp::kBxor:
      return fold<Bool, Bxor>;
    default:
      return nullptr;
  }
}

}  // namespace

namespace ARGOSY_KERNELS {

Kernel select(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kF32:
      return float_kernel<Plain<float>>(op);
    case DType::kF64:
      return float_kernel<Plain<double>>(op);
    case DType::kF16:
      return float_kernel<F16>(op);
    case DType::kBf16:
      return float_kernel<Bf16>(op);
    case DType::kI8:
      return integer_kernel<int8_t>(op);
    case DType::kU8:
      return integer_kernel<uint8_t>(op);
    case DType::kI32:
      return integer_kernel<int32_t>(op);
    case DType::kI64:
      return integer_kernel<int64_t, I64Average>(op);
    case DType::kBool:
      return bool_kernel(op);
  }
  return nullptr;
}

}  // namespace ARGOSY_KERNELS
// NOLINTEND(misc-definitions-in-headers)
}  // namespace argosy::transport
