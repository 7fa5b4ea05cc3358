// The sum of sparse tensors, of which the ranks have other elements each.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "work.h"

namespace argosy_torch {

// The sum of the terms from `begin` to `end`, along the tree in which all sums are taken.
inline at::Tensor tree_sum(const Tensors& terms, size_t begin, size_t end) {
  if (end - begin == 1) {
    return terms[begin];
  }
  size_t half = 1;
  while (half * 2 < end - begin) {
    half *= 2;
  }
  return (tree_sum(terms, begin, begin + half) + tree_sum(terms, begin + half, end)).coalesce();
}

// Every rank's bytes, one after another.
inline at::Tensor gather_bytes(const Steps& run,
                               const at::Tensor& mine,
                               const std::vector<int64_t>& counts) {
  at::Tensor all =
      at::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, at::kByte);
  ArgosyStep step = moves(ARGOSY_ALL_GATHER_V, mine.data_ptr(), all.data_ptr(), 0);
  step.receive_counts = counts.data();
  run(step);
  return all;
}

inline at::Tensor sum_sparse(const Steps& run, const at::Tensor& tensor, int size) {
  const at::Tensor mine = tensor.coalesce();
  const at::Tensor indices = mine.indices().t().contiguous();
  const at::Tensor values = mine.values().contiguous();
  const int64_t count = mine._nnz();
  std::vector<int64_t> counts(static_cast<size_t>(size));
  run(moves(ARGOSY_ALL_GATHER, &count, counts.data(), sizeof count));
  const auto in_bytes = [&](const at::Tensor& of) {
    const int64_t each =
        of.numel() / std::max<int64_t>(count, 1) * static_cast<int64_t>(of.element_size());
    std::vector<int64_t> bytes(counts);
    for (int64_t& one : bytes) {
      one *= each;
    }
    return bytes;
  };
  // A rank without values knows how large one is by the shape.
  at::Tensor like_index = count > 0 ? indices : at::empty({1, mine.sparse_dim()}, at::kLong);
  std::vector<int64_t> shape(values.sizes().begin() + 1, values.sizes().end());
  shape.insert(shape.begin(), 1);
  at::Tensor like_value = count > 0 ? values : at::empty(shape, values.options());
  const std::vector<int64_t> index_bytes = in_bytes(like_index);
  const std::vector<int64_t> value_bytes = in_bytes(like_value);
  const at::Tensor all_indices = gather_bytes(run, indices, index_bytes);
  const at::Tensor all_values = gather_bytes(run, values, value_bytes);
  Tensors terms;
  int64_t index_at = 0;
  int64_t value_at = 0;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    shape[0] = counts[rank];
    terms.push_back(at::sparse_coo_tensor(
        at::from_blob(static_cast<char*>(all_indices.data_ptr()) + index_at,
                      {counts[rank], mine.sparse_dim()},
                      at::kLong)
            .t()
            .clone(),
        at::from_blob(static_cast<char*>(all_values.data_ptr()) + value_at, shape, values.options())
            .clone(),
        tensor.sizes()));
    index_at += index_bytes[rank];
    value_at += value_bytes[rank];
  }
  return tree_sum(terms, 0, terms.size()).coalesce();
}

}  // namespace argosy_torch
