#include "tests/fake_nccl/arithmetic.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "argosy/transport/float16.h"

namespace fake_nccl {
namespace {

using Ranks = std::vector<std::vector<std::byte>>;
using namespace argosy::transport;  // conversions of 16 bits  //
                                    // NOLINT(google-build-using-namespace)

enum Operation { kSumOf, kProdOf, kMaxOf, kMinOf, kAvgOf };

/// A type of the host, and its values in 16 bits.
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  static T load(T v) { return v; }
  static T store(T v) { return v; }
};
struct Half {
  using Stored = uint16_t;
  using Value = float;
  static float load(uint16_t v) { return f16_value(v); }
  static uint16_t store(float v) { return f16_bits(v); }
};
struct Bfloat {
  using Stored = uint16_t;
  using Value = float;
  static float load(uint16_t v) { return bf16_value(v); }
  static uint16_t store(float v) { return bf16_bits(v); }
};

template <typename T>
T fold(T a, T b, int op) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == kSumOf) {
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    }
    if (op == kProdOf) {
      return static_cast<T>(static_cast<U>(uint64_t{static_cast<U>(a)} * static_cast<U>(b)));
    }
  }
  switch (op) {
    case kProdOf:
      return static_cast<T>(a * b);
    case kMaxOf:
      return std::max(a, b);
    case kMinOf:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

template <typename E>
std::vector<std::byte> combine(const Ranks& ranks, int op) {
  using Stored = typename E::Stored;
  using Value = typename E::Value;
  std::vector<std::byte> result(ranks.front().size());
  const size_t n = ranks.size();
  for (size_t i = 0; i * sizeof(Stored) < result.size(); ++i) {
    const auto value_of = [&](size_t rank) {
      Stored stored;
      std::memcpy(&stored, ranks[rank].data() + i * sizeof(Stored), sizeof(Stored));
      const Value value = E::load(stored);
      return op == kAvgOf ? static_cast<Value>(value / static_cast<Value>(n)) : value;
    };
    const size_t first = (i / 7) % n;
    Value sum = value_of(first);
    for (size_t step = 1; step < n; ++step) {
      sum = E::load(E::store(fold(sum, value_of((first + step) % n), op)));
    }
    const Stored stored = E::store(sum);
    std::memcpy(result.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return result;
}

}  // namespace

size_t size_of(int type) {
  constexpr std::array<size_t, 10> kSizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes.at(static_cast<size_t>(type));
}

std::vector<std::byte> combined(const Ranks& ranks, int type, int op) {
  switch (type) {
    case 0:
      return combine<Plain<int8_t>>(ranks, op);
    case 1:
      return combine<Plain<uint8_t>>(ranks, op);
    case 2:
      return combine<Plain<int32_t>>(ranks, op);
    case 3:
      return combine<Plain<uint32_t>>(ranks, op);
    case 4:
      return combine<Plain<int64_t>>(ranks, op);
    case 5:
      return combine<Plain<uint64_t>>(ranks, op);
    case 6:
      return combine<Half>(ranks, op);
    case 7:
      return combine<Plain<float>>(ranks, op);
    case 8:
      return combine<Plain<double>>(ranks, op);
    case 9:
      return combine<Bfloat>(ranks, op);
    default:
      throw std::invalid_argument("no such type");
  }
}

}  // namespace fake_nccl
