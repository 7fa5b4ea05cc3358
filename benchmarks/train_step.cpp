// Time of a training step: forward, backward with reduction, Adam, zero_grad.
//
//     argosy launch --nproc_per_node 2 bench_train_step resnet18_sized|mnist_cnn [--steps 60]
//         [--warmup 15]
//
// The peer is peers/train_step.py: same weights, same data, same order.
#include <argosy/argosy.h>

#include <torch/torch.h>

#include "benchmarks/workload.h"
#include <CLI/CLI.hpp>

namespace {

using namespace argosy;

struct Options {
  std::string model;
  int steps = 60;
  int warmup = 15;
};

constexpr int64_t kBatch = 100;  // per rank
constexpr int64_t kBatches = 8;

/// Equal on all ranks and on the peer: the parameters' sum.
std::pair<double, bool> checksum(const engine::NamedTensors& parameters) {
  torch::NoGradGuard no_grad;
  at::Tensor sum = torch::zeros({1}, torch::kDouble);
  for (const auto& [name, p] : parameters) {
    sum += p.to(torch::kDouble).sum();
  }
  at::Tensor low = sum.clone();
  at::Tensor high = sum.clone();
  comm::all_reduce(low, fleet::group(), {.op = comm::ReduceOp::kMin});
  comm::all_reduce(high, fleet::group(), {.op = comm::ReduceOp::kMax});
  return {sum.item<double>(), torch::equal(low, high)};
}

template <typename Model, typename Loss>
void measure(const Options& options, Model model, Loss loss_of_step) {
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3}));
  std::vector<double> samples_ms;
  std::vector<at::Tensor> losses;
  fleet::barrier_worker();
  for (int step = 0; step < options.warmup + options.steps; ++step) {
    const bench::Stopwatch watch;
    at::Tensor loss = loss_of_step(model, step);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    if (step >= options.warmup) {
      samples_ms.push_back(watch.ms());
    }
    losses.push_back(loss.detach());
  }
  const auto [sum, agree] = checksum(engine::named_parameters(model));
  if (fleet::is_first_worker()) {
    bench::Report report(options.model);
    report.number("ranks", fleet::worker_num());
    report.numbers("samples_ms", samples_ms);
    report.number("loss_first", losses.front().item<double>());
    report.number("loss_last", losses.back().item<double>());
    report.number("checksum", sum);
    report.text("ranks_agree", agree ? "yes" : "no");
    bench::add_versions(report);
    report.print();
  }
}

void run(const Options& options) {
  fleet::init();
  const int rank = fleet::worker_index();
  if (options.model == "resnet18_sized") {
    measure(options, fleet::distributed_model(bench::ResNet18Sized(rank)), [](auto& model, int) {
      return model();
    });
    return;
  }
  vision::MnistCnn net;
  bench::fill_weights(*net);
  std::vector<bench::Batch> batches;
  for (int64_t i = 0; i < kBatches; ++i) {
    batches.push_back(bench::image_batch(kBatch, 100 * rank + i));
  }
  measure(options, fleet::distributed_model(net), [&](auto& model, int step) {
    const bench::Batch& batch = batches[step % kBatches];
    return torch::nn::functional::cross_entropy(model(batch.images), batch.labels);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Time of a training step of DistributedDataParallel.");
  app.add_option("model", options.model, "resnet18_sized or mnist_cnn")
      ->required()
      ->check(CLI::IsMember({"resnet18_sized", "mnist_cnn"}));
  app.add_option("--steps", options.steps, "Measured steps")->check(CLI::Range(1, 100000));
  app.add_option("--warmup", options.warmup, "Steps before them")->check(CLI::Range(0, 100000));
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 1;
  }
}
