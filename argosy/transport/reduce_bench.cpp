#include <cstring>
#include <vector>

#include <benchmark/benchmark.h>

#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/reduce.h"

namespace argosy::transport {
namespace {

/// Bytes read and written per second; memcpy of the same buffers is the yardstick.
void report(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

void bench_reduce(benchmark::State& state, DType dtype) {
  const auto n = static_cast<size_t>(state.range(0));
  const int64_t bytes = state.range(1);
  std::vector<std::vector<char>> sources(n, std::vector<char>(static_cast<size_t>(bytes), 1));
  std::vector<const void*> pointers;
  for (const auto& source : sources) {
    pointers.push_back(source.data());
  }
  const LeafDeal deal = LeafDeal::one_each(static_cast<int>(n));
  const Terms terms{.data = pointers.data(),
                    .merges = deal.sums()[0].merges.data(),
                    .count = static_cast<int>(n)};
  for (auto _ : state) {
    reduce(terms,
           sources[0].data(),
           bytes / static_cast<int64_t>(size_of(dtype)),
           dtype,
           ReduceOp::kSum);
    benchmark::ClobberMemory();
  }
  report(state, bytes * static_cast<int64_t>(n + 1));
}

void bench_memcpy(benchmark::State& state) {
  const int64_t bytes = state.range(0);
  std::vector<char> from(static_cast<size_t>(bytes), 1), to(static_cast<size_t>(bytes));
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  report(state, 2 * bytes);
}

BENCHMARK(bench_memcpy)->Arg(64 << 10)->Arg(32 << 20);
BENCHMARK_CAPTURE(bench_reduce, f32, DType::kF32)->ArgsProduct({{2, 4, 8}, {64 << 10, 32 << 20}});
BENCHMARK_CAPTURE(bench_reduce, f16, DType::kF16)->ArgsProduct({{2, 4, 8}, {64 << 10, 32 << 20}});
BENCHMARK_CAPTURE(bench_reduce, bf16, DType::kBf16)->ArgsProduct({{2, 4, 8}, {64 << 10, 32 << 20}});

}  // namespace
}  // namespace argosy::transport
