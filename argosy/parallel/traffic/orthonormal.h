#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

// Internal to the room.
namespace argosy::parallel::traffic {

/// Makes the rows of a matrix [rows, length] orthonormal, in place, from the first to the last
/// (Gram and Schmidt, twice). A row that lies in the span of those before it becomes zero. Sums are
/// taken in f64 in a fixed order: the same bits on every rank, for any number of threads.
/// Returns the rows that became zero.
std::vector<int64_t> orthonormalize_rows(const at::Tensor& matrix);

/// Fills a tensor with numbers from -1 to 1 that follow from `seed` alone.
void fill_random(const at::Tensor& tensor, uint64_t seed);

}  // namespace argosy::parallel::traffic
