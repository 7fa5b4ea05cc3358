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

/// Elements combined at a time: the few sums that wait (8 KiB each at most) stay in the cache.
constexpr int64_t kBlock = 1024;

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
    explicit Acc(int64_t n) : sum(static_cast<uint64_t>(n)) {}
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

/// A block of the elements of each term, combined.
template <typename E, typename Op>
class Block final {
 public:
  using Stored = typename E::Stored;
  using Acc = typename E::Acc;

  Block(const Terms& terms, int64_t begin, int64_t count)
      : terms_(terms), begin_(begin), count_(count) {}

  /// The first two of each four, eight, … terms go on the stack as one, and a term that is added at
  /// once never goes there: most terms are read once and written nowhere.
  const Acc* combined() {
    const int n = terms_.count;
    for (int i = 0; i < n; ++i) {
      int merges = terms_.merges[i];
      if (merges > 0) {
        add(at(i));
        --merges;
      } else if (i + 1 < n && terms_.merges[i + 1] > 0) {
        push_sum(at(i), at(i + 1));
        ++i;
        merges = terms_.merges[i] - 1;
      } else {
        push(at(i));
      }
      for (; merges > 0; --merges) {
        add_highest();
      }
    }
    return waiting_[0];
  }

 private:
  const std::byte* at(int term) const {
    return static_cast<const std::byte*>(terms_.data[term]) +
           begin_ * static_cast<int64_t>(sizeof(Stored));
  }
  void push(const std::byte* term) {
    Acc* const to = waiting_[size_++];
    for (int64_t i = 0; i < count_; ++i) {
      to[i] = E::load(element<Stored>(term, i));
    }
  }
  void push_sum(const std::byte* left, const std::byte* right) {
    Acc* const to = waiting_[size_++];
    for (int64_t i = 0; i < count_; ++i) {
      to[i] = Op::fold(E::load(element<Stored>(left, i)), E::load(element<Stored>(right, i)));
    }
  }
  void add(const std::byte* term) {
    Acc* const to = waiting_[size_ - 1];
    for (int64_t i = 0; i < count_; ++i) {
      to[i] = Op::fold(to[i], E::load(element<Stored>(term, i)));
    }
  }
  void add_highest() {
    --size_;
    Acc* const to = waiting_[size_ - 1];
    const Acc* const right = waiting_[size_];
    for (int64_t i = 0; i < count_; ++i) {
      to[i] = Op::fold(to[i], right[i]);
    }
  }

  const Terms& terms_;
  const int64_t begin_;
  const int64_t count_;
  int size_ = 0;
  alignas(64) Acc waiting_[kMostWaiting][kBlock];
};

template <typename E, typename Op, bool kAverage = false>
void combine(const Terms& terms, void* to, int64_t count) {
  using Stored = typename E::Stored;
  using Acc = typename E::Acc;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = count - begin < kBlock ? count - begin : kBlock;
    Block<E, Op> block(terms, begin, length);
    const Acc* const sums = block.combined();
    std::byte* const place =
        static_cast<std::byte*>(to) + begin * static_cast<int64_t>(sizeof(Stored));
    for (int64_t i = 0; i < length; ++i) {
      Acc result = sums[i];
      if constexpr (kAverage) {
        result = static_cast<Acc>(result / static_cast<Acc>(terms.divisor));
      }
      const Stored stored = E::store(result);
      std::memcpy(place + i * static_cast<int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
    }
  }
}

template <typename E>
Kernel float_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return combine<E, Sum>;
    case ReduceOp::kAvg:
      return combine<E, Sum, true>;
    case ReduceOp::kMin:
      return combine<E, Min>;
    case ReduceOp::kMax:
      return combine<E, Max>;
    case ReduceOp::kProduct:
      return combine<E, Product>;
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
      return combine<Unsigned, Sum>;
    case ReduceOp::kAvg:
      return combine<Average, Sum, true>;
    case ReduceOp::kMin:
      return combine<Plain<T>, Min>;
    case ReduceOp::kMax:
      return combine<Plain<T>, Max>;
    case ReduceOp::kProduct:
      return combine<Unsigned, Product>;
    case ReduceOp::kBand:
      return combine<Unsigned, Band>;
    case ReduceOp::kBor:
      return combine<Unsigned, Bor>;
    case ReduceOp::kBxor:
      return combine<Unsigned, Bxor>;
  }
  return nullptr;
}

Kernel bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBor:
      return combine<Bool, Bor>;
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBand:
      return combine<Bool, Band>;
    case ReduceOp::kBxor:
      return combine<Bool, Bxor>;
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
