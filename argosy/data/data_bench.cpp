// Images per second of a 28 × 28 set in memory, batch 100, by the gather and by the sample path.
//   data_bench --benchmark_filter=Gather
#include <optional>
#include <vector>

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

/// 256 pictures of three channels, batch 32, by the sample: row-major into row-major (0) and into
/// channels_last (1).
struct Pictures {
  std::vector<at::Tensor> all = torch::rand({8, 3, 224, 224}).unbind();
  int64_t size() const { return 256; }
  at::Tensor get(int64_t index) const { return all[index % 8]; }
};

void BM_MemoryFormat(benchmark::State& state) {
  static const Pictures pictures;
  DataLoader loader(pictures,
                    {.batch_size = 32,
                     .memory_format = state.range(0) == 0 ? at::MemoryFormat::Contiguous
                                                          : at::MemoryFormat::ChannelsLast});
  for (auto _ : state) {
    for (auto& x : loader) {
      benchmark::DoNotOptimize(x.data_ptr());
    }
  }
  state.SetItemsProcessed(state.iterations() * 256);
}
BENCHMARK(BM_MemoryFormat)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

/// What a stream costs beside its own work: numbers, batch 100.
struct Numbers {
  struct Stream {
    int64_t at = 0;
    std::optional<int64_t> next() {
      return at < kImages ? std::optional<int64_t>(at++) : std::nullopt;
    }
  };
  static Stream stream(const Pass& /*pass*/) { return {}; }
};

void BM_Stream(benchmark::State& state) {
  DataLoader loader(Numbers(),
                    {.batch_size = 100, .num_workers = static_cast<int>(state.range(0))});
  for (auto _ : state) {
    for (auto& x : loader) {
      benchmark::DoNotOptimize(x.data_ptr());
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK(BM_Stream)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

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
