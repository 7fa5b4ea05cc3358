// Time of a training step of MnistCnn whose weights lie on servers.
//
//     argosy launch --server_num 1 --worker_num 2 bench_ps_training [--mode sync|async|half_async]
//         [--steps 60] [--warmup 15] [--batch 100] [--slow_ms 0]
//
// Its weights and batches are those of bench_train_step mnist_cnn. --slow_ms: the last worker
// sleeps so long in each step, and makes a quarter of the steps.
#include <chrono>
#include <map>
#include <thread>

#include <torch/torch.h>

#include "argosy/optim/adam.h"
#include "argosy/program/command_line.h"
#include "argosy/ps/training.h"
#include "argosy/vision/models/mnist_cnn.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string mode = "sync";
  int steps = 60;
  int warmup = 15;
  int64_t batch = 100;
  int slow_ms = 0;
};

ps::UpdateMode mode_of(const std::string& name) {
  static const std::map<std::string, ps::UpdateMode> modes{
      {"sync", ps::UpdateMode::kSync},
      {"async", ps::UpdateMode::kAsync},
      {"half_async", ps::UpdateMode::kHalfAsync}};
  return modes.at(name);
}

void measure(const Options& options) {
  constexpr int64_t kBatches = 8;
  vision::MnistCnn net;
  bench::fill_weights(*net);
  optim::Adam optimizer(*net, {.lr = 1e-3});
  ps::ServedTraining training(*net,
                              optimizer,
                              {.roles = ps::Roles::from_environment(),
                               .mode = mode_of(options.mode),
                               .staleness = 1'000'000});
  if (training.is_server()) {
    training.serve();
    return;
  }
  const int worker = training.roles().index;
  std::vector<bench::Batch> batches;
  for (int64_t number = 0; number < kBatches; ++number) {
    batches.push_back(bench::image_batch(options.batch, 100 * worker + number));
  }
  const bool is_slow = options.slow_ms > 0 && worker == training.roles().workers - 1;
  training.barrier();
  std::vector<double> samples_ms;
  double first = 0;
  double last = 0;
  const int steps = (options.warmup + options.steps) / (is_slow ? 4 : 1);
  for (int step = 0; step < steps; ++step) {
    const bench::Stopwatch watch;
    const bench::Batch& batch = batches[static_cast<size_t>(step % kBatches)];
    at::Tensor loss = torch::nn::functional::cross_entropy(net(batch.images), batch.labels);
    loss.backward();
    training.step();
    optimizer.zero_grad();
    last = loss.item<double>();
    first = step == 0 ? last : first;
    if (step >= options.warmup) {
      samples_ms.push_back(watch.ms());
    }
    if (is_slow) {
      std::this_thread::sleep_for(std::chrono::milliseconds(options.slow_ms));
    }
  }
  if (worker == 0) {
    bench::Report report("ps_training");
    report.numbers("samples_ms", samples_ms);
    report.number("loss_first", first);
    report.number("loss_last", last);
    bench::add_versions(report);
    report.print();
  }
  training.stop();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return program::run(
      {"Time of a training step with servers."},
      {{"--mode", "NAME", "When servers update", &o.mode, {.words = "sync|async|half_async"}},
       {"--steps", "N", "Measured steps", &o.steps, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 0, .most = 100000}},
       {"--batch", "N", "Images of a batch", &o.batch, {.least = 1, .most = 100000}},
       {"--slow_ms", "N", "The last worker's sleep", &o.slow_ms, {.least = 0, .most = 10000}}},
      argc,
      argv,
      [&] { measure(o); });
}
