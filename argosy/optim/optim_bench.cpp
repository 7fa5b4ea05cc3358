// The fused step against libtorch's own and against the machine's copy bandwidth, on the 11.7
// million parameters of a ResNet-18 (62 tensors). BytesPerSecond counts what a step must move: Adam
// reads four arrays and writes three.
//
//     optim_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "argosy/engine/cpu.h"
#include "argosy/optim/kernels/parallel.h"
#include "argosy/optim/optim.h"

namespace {

using argosy::engine::NamedTensors;

// Shapes of ResNet-18: 20 convolutions, 20 batch norms, one linear layer.
NamedTensors resnet18_parameters() {
  argosy::engine::setup_cpu();
  NamedTensors list;
  const auto add = [&](torch::IntArrayRef shape) {
    list.emplace_back(fmt::format("p{}", list.size()), torch::randn(shape).requires_grad_(true));
  };
  const auto conv = [&](int64_t out, int64_t in, int64_t kernel) {
    add({out, in, kernel, kernel});
    add({out});
    add({out});
  };
  conv(64, 3, 7);
  for (int64_t width = 64, in = 64; width <= 512; in = width, width *= 2) {
    conv(width, in, 3);
    for (int i = 0; i < 3; ++i) {
      conv(width, width, 3);
    }
    if (in != width) {
      conv(width, in, 1);
    }
  }
  add({1000, 512});
  add({1000});
  for (const auto& [name, parameter] : list) {
    parameter.mutable_grad() = torch::randn_like(parameter.detach());
  }
  return list;
}

int64_t elements(const NamedTensors& list) {
  int64_t total = 0;
  for (const auto& [name, tensor] : list) {
    total += tensor.numel();
  }
  return total;
}

std::vector<torch::Tensor> tensors(const NamedTensors& list) {
  std::vector<torch::Tensor> result;
  for (const auto& [name, tensor] : list) {
    result.push_back(tensor);
  }
  return result;
}

template <typename Optimizer>
void run(benchmark::State& state, Optimizer& optimizer, const NamedTensors& list, int64_t arrays) {
  at::set_num_threads(static_cast<int>(state.range(0)));
  optimizer.step();  // makes the state
  for (auto _ : state) {
    optimizer.step();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * elements(list) * arrays * 4);
}

void BM_ArgosyAdam(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::Adam optimizer(list);
  run(state, optimizer, list, 7);
}

void BM_ArgosyAdamClipped(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::Adam optimizer(list, {.grad_clip = argosy::optim::ClipGradByGlobalNorm(1)});
  run(state, optimizer, list, 8);  // the norm reads the gradients once more
}

void BM_ArgosyMomentum(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::Momentum optimizer(list);
  run(state, optimizer, list, 5);
}

void BM_ArgosyRMSProp(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::RMSProp optimizer(list);
  run(state, optimizer, list, 5);
}

void BM_ArgosyAdagrad(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::Adagrad optimizer(list);
  run(state, optimizer, list, 5);
}

void BM_ArgosyLamb(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::Lamb optimizer(list);
  run(state, optimizer, list, 10);  // four read and two written, then three read and one written
}

void BM_ArgosyLars(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::Lars optimizer(list);
  run(state, optimizer, list, 7);  // two read, then three read and two written
}

void BM_ArgosyEma(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  argosy::optim::ExponentialMovingAverage average(list);
  struct Step {
    argosy::optim::ExponentialMovingAverage& average;
    void step() { average.update(); }
  } optimizer{average};
  run(state, optimizer, list, 3);
}

void BM_TorchRMSprop(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  torch::optim::RMSprop optimizer(tensors(list));
  run(state, optimizer, list, 5);
}

void BM_TorchAdagrad(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  torch::optim::Adagrad optimizer(tensors(list));
  run(state, optimizer, list, 5);
}

void BM_TorchAdam(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  torch::optim::Adam optimizer(tensors(list));
  run(state, optimizer, list, 7);
}

void BM_TorchMomentum(benchmark::State& state) {
  const NamedTensors list = resnet18_parameters();
  torch::optim::SGD optimizer(tensors(list), torch::optim::SGDOptions(1e-3).momentum(0.9));
  run(state, optimizer, list, 5);
}

// As many bytes as Adam moves, half read and half written, by memcpy on the same threads.
void BM_Copy(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  const int64_t bytes = 7 * elements(resnet18_parameters()) * 4 / 2;
  const torch::Tensor from = torch::ones({bytes}, torch::kByte),
                      to = torch::ones({bytes}, torch::kByte);
  const std::size_t part = static_cast<std::size_t>(bytes / threads);
  std::vector<argosy::optim::kernels::Piece> pieces;  // one large memcpy per thread
  for (int thread = 0; thread < threads; ++thread) {
    pieces.push_back({0, static_cast<std::size_t>(thread) * part, part});
  }
  for (auto _ : state) {
    argosy::optim::kernels::for_each_piece(pieces, threads, [&](std::size_t i) {
      std::memcpy(to.data_ptr<uint8_t>() + pieces[i].begin,
                  from.data_ptr<uint8_t>() + pieces[i].begin,
                  pieces[i].count);
    });
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * bytes * 2);
}

#define ARGOSY_OPTIM_BENCH(name) \
  BENCHMARK(name)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()
ARGOSY_OPTIM_BENCH(BM_Copy);
ARGOSY_OPTIM_BENCH(BM_ArgosyAdam);
ARGOSY_OPTIM_BENCH(BM_ArgosyAdamClipped);
ARGOSY_OPTIM_BENCH(BM_ArgosyMomentum);
ARGOSY_OPTIM_BENCH(BM_ArgosyRMSProp);
ARGOSY_OPTIM_BENCH(BM_ArgosyAdagrad);
ARGOSY_OPTIM_BENCH(BM_ArgosyLamb);
ARGOSY_OPTIM_BENCH(BM_ArgosyLars);
ARGOSY_OPTIM_BENCH(BM_ArgosyEma);
ARGOSY_OPTIM_BENCH(BM_TorchRMSprop);
ARGOSY_OPTIM_BENCH(BM_TorchAdagrad);
ARGOSY_OPTIM_BENCH(BM_TorchAdam);
ARGOSY_OPTIM_BENCH(BM_TorchMomentum);

}  // namespace
