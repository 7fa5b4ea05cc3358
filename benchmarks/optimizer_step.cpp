// Time of a step of Adam over the parameters of a ResNet-18 (62 tensors, 11,689,512 elements), in
// one process.
//
//     bench_optimizer_step [--samples 40] [--warmup 5] [--copy]
//
// The peer is peers/optimizer_step.py. --copy: memcpy of as many bytes as a step reads and writes,
// which is seven numbers an element: what the machine's memory allows.
#include <argosy/argosy.h>

#include <cstring>

#include <torch/torch.h>

#include "argosy/engine/cpu.h"
#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  int samples = 40;
  int warmup = 5;
  bool copy = false;
};

template <typename Body>
std::vector<double> timed(const Options& options, Body body) {
  std::vector<double> samples_ms;
  for (int i = 0; i < options.warmup + options.samples; ++i) {
    const bench::Stopwatch watch;
    body();
    if (i >= options.warmup) {
      samples_ms.push_back(watch.ms());
    }
  }
  return samples_ms;
}

/// A copy moves two numbers an element: 3.5 of them move as much as a step.
std::vector<double> copies(const Options& options, int64_t elements) {
  constexpr int kHalves = 7;
  const at::Tensor from = torch::ones({elements / 2});
  std::vector<at::Tensor> to;
  for (int i = 0; i < kHalves; ++i) {
    to.push_back(torch::zeros_like(from));
  }
  return timed(options, [&] {
    for (at::Tensor& half : to) {
      std::memcpy(half.data_ptr(), from.data_ptr(), from.nbytes());
    }
  });
}

void run(const Options& options) {
  engine::setup_cpu();
  bench::ResNet18Sized net(0);
  const engine::NamedTensors parameters = engine::named_parameters(net);
  int64_t elements = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor parameter = parameters[i].second;
    parameter.mutable_grad() =
        bench::pattern(parameter.sizes(), 3000 + static_cast<int64_t>(i)) * 0.01;
    elements += parameter.numel();
  }
  bench::Report report("optimizer_step");
  report.number("ranks", 1);
  if (options.copy) {
    report.numbers("samples_ms", copies(options, elements));
  } else {
    optim::Adam optimizer(net, {.lr = 1e-3});
    report.numbers("samples_ms", timed(options, [&] { optimizer.step(); }));
    double squares = 0;
    for (const auto& [name, parameter] : parameters) {
      squares += parameter.detach().to(torch::kDouble).square().sum().item<double>();
    }
    report.number("checksum", squares);
  }
  bench::add_versions(report);
  report.print();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of a step of Adam."},
      {{"--samples", "N", "Measured steps", &o.samples, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 0, .most = 100000}},
       {"--copy", "", "Copy as many bytes instead", &o.copy}},
      argc,
      argv,
      [&] { run(o); });
}
