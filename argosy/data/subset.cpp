#include "argosy/data/subset.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "argosy/base/check.h"
#include "argosy/data/permutation.h"

namespace argosy::data {

void check_indices(const char* where, std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    ARGOSY_CHECK(index >= 0 && index < size,
                 where,
                 "index {} is outside the data set of {} samples. Was the list or the sampler made "
                 "for another one?",
                 index,
                 size);
  }
}

std::vector<int64_t> split_sizes(int64_t n, std::span<const double> fractions) {
  double sum = 0;
  for (const double fraction : fractions) {
    ARGOSY_CHECK(fraction >= 0 && fraction <= 1,
                 "data.random_split",
                 "fractions must be from 0 to 1, got {}",
                 fraction);
    sum += fraction;
  }
  ARGOSY_CHECK(
      std::abs(sum - 1) < 1e-6, "data.random_split", "fractions must sum to 1, got {}", sum);
  std::vector<int64_t> sizes;
  for (const double fraction : fractions) {
    sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(n) * fraction)));
  }
  int64_t left = n - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % sizes.size(), --left) {
    ++sizes[i];
  }
  return sizes;
}

std::vector<std::vector<int64_t>> split_indices(int64_t n,
                                                std::span<const int64_t> sizes,
                                                const RandomSplitOptions& options) {
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    ARGOSY_CHECK(size >= 0, "data.random_split", "sizes must not be negative, got {}", size);
    if (__builtin_add_overflow(sum, size, &sum)) {
      sum = std::numeric_limits<int64_t>::max();  // too many, however many
    }
  }
  ARGOSY_CHECK(sum == n,
               "data.random_split",
               "sizes must sum to the {} samples of the data set, got {}",
               n,
               sum);
  const std::vector<int64_t> order = torch_randperm(n, options.seed);
  std::vector<std::vector<int64_t>> parts;
  auto begin = order.begin();
  for (const int64_t size : sizes) {
    parts.emplace_back(begin, begin + size);
    begin += size;
  }
  return parts;
}

}  // namespace argosy::data
