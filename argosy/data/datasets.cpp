#include <cmath>
#include <limits>
#include <numeric>

#include <torch/types.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/data/concat.h"
#include "argosy/data/permutation.h"
#include "argosy/data/rows.h"
#include "argosy/data/subset.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {

at::Tensor gather_rows(const at::Tensor& source,
                       std::span<const int64_t> indices,
                       const BatchContext& context) {
  const int64_t rows = source.size(0);
  for (const int64_t index : indices) {
    if (index < 0 || index >= rows) {
      throw DataError("data.gather",
                      fmt::format("index outside the data set of {} samples", rows),
                      {.path = "", .index = index});
    }
  }
  std::vector<int64_t> sizes = source.sizes().vec();
  sizes[0] = static_cast<int64_t>(indices.size());
  at::Tensor out = context.empty_batch(sizes, source.scalar_type());
  detail::RowWriter(out).gather(source, indices);
  return out;
}

namespace detail {

at::Tensor merge_rows(std::span<const at::Tensor> pieces,
                      std::span<const std::vector<int64_t>> to,
                      const BatchContext& context) {
  const at::Tensor& first = pieces.front();
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.at(0) = 0;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const at::Tensor& piece = pieces[k];
    if (piece.dim() != first.dim() || piece.scalar_type() != first.scalar_type() ||
        piece.sizes().slice(1) != first.sizes().slice(1)) {
      throw DataError("data.Concat",
                      fmt::format("expected samples of shape {} of {}, as in the first of the "
                                  "batch, got {} of {} from another set. Put a Map before it",
                                  text::shape(first.sizes().slice(1)),
                                  c10::toString(first.scalar_type()),
                                  text::shape(piece.sizes().slice(1)),
                                  c10::toString(piece.scalar_type())),
                      {.path = "", .index = context.indices[to[k].front()]});
    }
    sizes[0] += static_cast<int64_t>(to[k].size());
  }
  at::Tensor out = context.empty_batch(sizes, first.scalar_type());
  const RowWriter rows(out);
  for (size_t k = 0; k < pieces.size(); ++k) {
    rows.scatter(pieces[k], to[k]);
  }
  return out;
}

}  // namespace detail

int64_t check_same_rows(std::span<const at::Tensor> tensors) {
  int64_t rows = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ARGOSY_CHECK(tensors[i].defined() && tensors[i].dim() > 0 && tensors[i].device().is_cpu(),
                 "data.TensorDataset",
                 "tensor {} must be a CPU tensor with a first dimension",
                 i);
    rows = i == 0 ? tensors[i].size(0) : rows;
    ARGOSY_CHECK(tensors[i].size(0) == rows,
                 "data.TensorDataset",
                 "expected equal first dimensions, got {} in tensor 0 and {} in tensor {}",
                 rows,
                 tensors[i].size(0),
                 i);
  }
  return rows;
}

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
