#pragma once

#include <cstdint>
#include <vector>

namespace argosy::data {

/// Permutes `values` as `numpy.random.RandomState(seed).shuffle(list)` does, bit for bit.
///
/// Errors: UsageError for more than 2^32 values.
/// Source: numpy/random/_generator and mtrand `shuffle` with the legacy masked `random_interval`
/// (2.4.6): MT19937, one draw masked to the next power of two, rejected while too large.
void numpy_shuffle(std::vector<int64_t>& values, uint32_t seed);

/// Returns what `torch.randperm(n, generator=g)` returns after `g.manual_seed(seed)` on the CPU,
/// bit for bit. Only the low 32 bits of the seed count, as in PyTorch.
///
/// It is implemented here, because data loading must give the same order under every libtorch.
/// Source: aten/src/ATen/native/TensorFactories.cpp, randperm_cpu (2.15): Fisher-Yates from the
/// front, MT19937 modulo what is left; two draws to a number from 2^32 / 20 values on.
[[nodiscard]] std::vector<int64_t> torch_randperm(int64_t n, uint64_t seed);

/// Returns 0, 1, … n - 1.
[[nodiscard]] std::vector<int64_t> in_order(int64_t n);

/// Appends the leading values, repeated as often as needed, up to `total`. Does nothing for no
/// values.
void pad_with_head(std::vector<int64_t>& values, int64_t total);

}  // namespace argosy::data
