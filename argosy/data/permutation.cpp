#include "argosy/data/permutation.h"

#include <bit>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "argosy/base/check.h"

namespace argosy::data {

void numpy_shuffle(std::vector<int64_t>& values, uint32_t seed) {
  const uint64_t n = values.size();
  ARGOSY_CHECK(n <= uint64_t{1} << 32,
               "data.shuffle",
               "expected at most 2^32 samples to shuffle in NumPy's order, got {}",
               n);
  // The C++ standard fixes mt19937's output; its distributions are not fixed, so none is used.
  std::mt19937 generator(seed);
  for (uint64_t i = n; i-- > 1;) {
    const auto mask = static_cast<uint32_t>(std::bit_ceil(i + 1) - 1);
    uint64_t j = generator() & mask;
    while (j > i) {
      j = generator() & mask;
    }
    std::swap(values[i], values[j]);
  }
}

std::vector<int64_t> torch_randperm(int64_t n, uint64_t seed) {
  std::vector<int64_t> values = in_order(n);
  std::mt19937 generator(static_cast<uint32_t>(seed));
  const bool wide = n >= std::numeric_limits<uint32_t>::max() / 20;
  for (int64_t i = 0; i < n - 1; ++i) {
    uint64_t draw = generator();
    if (wide) {
      draw = draw << 32 | generator();
    }
    std::swap(values[i], values[i + static_cast<int64_t>(draw % static_cast<uint64_t>(n - i))]);
  }
  return values;
}

std::vector<int64_t> in_order(int64_t n) {
  std::vector<int64_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

void pad_with_head(std::vector<int64_t>& values, int64_t total) {
  const size_t head = values.size();
  if (head == 0) {
    return;
  }
  values.reserve(total);
  while (values.size() < static_cast<size_t>(total)) {
    values.push_back(values[values.size() - head]);
  }
}

}  // namespace argosy::data
