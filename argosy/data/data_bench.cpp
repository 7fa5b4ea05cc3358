// Images per second of a 28 × 28 set in memory, batch 100, by the gather and by the sample path.
//   data_bench --benchmark_filter=Gather
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "argosy/data/data_loader.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {
namespace {

constexpr int64_t kImages = 20'000;

const TensorDataset<2>& images() {
  static const TensorDataset<2> set(torch::rand({kImages, 1, 28, 28}), torch::arange(kImages));
  return set;
}

DataLoaderOptions options(const benchmark::State& state) {
  return {.batch_size = 100, .shuffle = true, .num_workers = static_cast<int>(state.range(0))};
}

template <typename Loader>
void run_epochs(benchmark::State& state, Loader& loader) {
  for (auto _ : state) {
    for (auto& [x, y] : loader) {
      benchmark::DoNotOptimize(x.data_ptr());
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}

void BM_Gather(benchmark::State& state) {
  DataLoader loader(images(), options(state));
  run_epochs(state, loader);
}
BENCHMARK(BM_Gather)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_SampleBySample(benchmark::State& state) {
  DataLoader loader(images(), options(state), [](const auto& samples, const BatchContext& context) {
    return DefaultCollate()(samples, context);
  });
  run_epochs(state, loader);
}
BENCHMARK(BM_SampleBySample)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

/// The floor: the same gather by libtorch itself, without a loader.
void BM_IndexSelect(benchmark::State& state) {
  for (auto _ : state) {
    const at::Tensor order = torch::randperm(kImages);
    for (int64_t i = 0; i < kImages; i += 100) {
      const at::Tensor index = order.slice(0, i, i + 100);
      benchmark::DoNotOptimize(images().tensors()[0].index_select(0, index).data_ptr());
      benchmark::DoNotOptimize(images().tensors()[1].index_select(0, index).data_ptr());
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK(BM_IndexSelect)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace argosy::data
