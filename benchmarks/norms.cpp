// Batch norm, relu and the sum with a residual, forward and backward, at the places of a ResNet-18:
// by argosy's operator, or by libtorch's after each other.
//
//     argosy launch --nproc_per_node 2 bench_norms [--plain]
#include <argosy/argosy.h>

#include <torch/torch.h>

#include "argosy/program/command_line.h"
#include "argosy/vision/ops/norm_relu.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;
namespace nn = torch::nn;

struct Options {
  bool plain = false;
  int steps = 12;
  int warmup = 3;
};

struct Place {
  int64_t channels;
  int64_t side;
  bool residual;
};

constexpr int64_t kBatch = 32;
constexpr int kBlocks = 2;  // of a layer, each with a norm of either kind

/// Those of ResNet-18 on images of 96×96, but for the three without a relu.
std::vector<Place> places() {
  std::vector<Place> all{{64, 48, false}};
  for (const auto& [channels, side] : {std::pair{64, 24}, {128, 12}, {256, 6}, {512, 3}}) {
    for (int i = 0; i < kBlocks; ++i) {
      all.push_back({channels, side, false});
      all.push_back({channels, side, true});
    }
  }
  return all;
}

struct Layer {
  nn::BatchNorm2d norm{nullptr};
  at::Tensor images;
  at::Tensor residual{};  ///< undefined where there is none
  at::Tensor gradient;
  at::Tensor output{};

  [[nodiscard]] at::Tensor forward(bool plain) {
    if (!plain) {
      return residual.defined() ? vision::ops::norm_add_relu(norm, images, residual)
                                : vision::ops::norm_relu(norm, images);
    }
    at::Tensor y = norm(images);
    return (residual.defined() ? y.add_(residual) : y).relu_();
  }
};

Layer make(const Place& place, int64_t seed) {
  const auto values = [&](int64_t number) {
    return bench::pattern({kBatch, place.channels, place.side, place.side}, 10 * seed + number)
        .contiguous(at::MemoryFormat::ChannelsLast);
  };
  Layer layer{.norm = nn::BatchNorm2d(place.channels), .images = values(1), .gradient = values(3)};
  layer.images.requires_grad_();
  if (place.residual) {
    layer.residual = values(2).requires_grad_();
  }
  return layer;
}

/// A convolution's worth of other memory, so that nothing is found in the caches.
void pass_through_memory(at::Tensor& other) {
  other.add_(1);
}

double time_of_a_step(std::vector<Layer>& layers, bool plain, at::Tensor& other) {
  double total = 0;
  for (Layer& layer : layers) {
    pass_through_memory(other);
    const bench::Stopwatch watch;
    layer.output = layer.forward(plain);
    total += watch.ms();
  }
  for (size_t i = layers.size(); i-- > 0;) {
    pass_through_memory(other);
    const bench::Stopwatch watch;
    layers[i].output.backward(layers[i].gradient);
    total += watch.ms();
  }
  return total;
}

/// Sums of squares, of every output, gradient and running statistic.
std::vector<double> checksums(const std::vector<Layer>& layers) {
  std::vector<double> sums;
  for (const Layer& layer : layers) {
    for (const at::Tensor& each : {layer.output.detach(),
                                   layer.images.grad(),
                                   layer.residual.defined() ? layer.residual.grad() : at::Tensor(),
                                   layer.norm->weight.grad(),
                                   layer.norm->bias.grad(),
                                   layer.norm->running_mean,
                                   layer.norm->running_var}) {
      if (each.defined()) {
        sums.push_back(each.to(torch::kDouble).square().sum().item<double>());
      }
    }
  }
  return sums;
}

void run(const Options& options) {
  fleet::init();
  std::vector<Layer> layers;
  for (const Place& place : places()) {
    layers.push_back(make(place, static_cast<int64_t>(layers.size())));
  }
  at::Tensor other = torch::zeros({16 << 20});
  std::vector<double> samples_ms;
  fleet::barrier_worker();
  for (int step = 0; step < options.warmup + options.steps; ++step) {
    for (Layer& layer : layers) {
      layer.images.mutable_grad().reset();
      if (layer.residual.defined()) {
        layer.residual.mutable_grad().reset();
      }
      layer.norm->zero_grad();
    }
    const double ms = time_of_a_step(layers, options.plain, other);
    if (step >= options.warmup) {
      samples_ms.push_back(ms);
    }
  }
  if (fleet::is_first_worker()) {
    bench::Report report("norms");
    report.numbers("samples_ms", samples_ms);
    report.numbers("checksums", checksums(layers));
    bench::add_versions(report);
    report.print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of ResNet-18's batch norms with what follows them."},
      {{"--plain", "", "libtorch's operators after each other", &o.plain},
       {"--steps", "N", "Measured steps", &o.steps, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 0, .most = 100000}}},
      argc,
      argv,
      [&] { run(o); });
}
