/// What saving costs a training: ResNet-18 with Adam's state, 140 MB. `save` is how long the loop
/// stands still, `save_to_disk` what the thread does meanwhile. `step` and `step_saving` are whole
/// steps (96 x 96, batch 32), the latter with a save every 20, five times as often as a training
/// would: its counter `stall_at_100` is the share of the loop's time that saves of every 100 steps
/// take in save(). The folder is $TMPDIR/argosy_checkpoint_bench.
#include <chrono>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "argosy/checkpoint/saver.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/optim/optim.h"
#include "argosy/vision/vision.h"

namespace argosy::checkpoint {
namespace {

using Seconds = std::chrono::duration<double>;

class Training final {
 public:
  Training() : net_(vision::resnet18()), optimizer_(net_, {.lr = 1e-3}) {
    for (const auto& [name, tensor] : engine::state_dict(net_)) {
      if (tensor.is_floating_point()) {
        state_.set(name + "/exp_avg", torch::zeros_like(tensor));
        state_.set(name + "/exp_avg_sq", torch::zeros_like(tensor));
      }
    }
  }

  void step() {
    torch::nn::functional::cross_entropy(net_->forward(images_), labels_).backward();
    optimizer_.step();
    optimizer_.zero_grad();
  }

  [[nodiscard]] Snapshot snapshot() const {
    return {.parts = {{"model", engine::state_dict(net_)}, {"optimizer", state_}}};
  }

 private:
  vision::ResNet net_;
  optim::Adam optimizer_;
  engine::StateDict state_;
  torch::Tensor images_ = torch::rand({32, 3, 96, 96});
  torch::Tensor labels_ = torch::randint(0, 1000, {32});
};

std::string folder() {
  return (std::filesystem::temp_directory_path() / "argosy_checkpoint_bench").string();
}

void save(benchmark::State& state) {
  const Training training;
  Saver saver(folder(), {.keep = {.keep_last = 2}});
  saver.save(training.snapshot());  // its memory is new
  saver.wait();
  int64_t step = 1;
  for (auto _ : state) {
    Snapshot snapshot = training.snapshot();
    snapshot.step = step++;
    const auto start = std::chrono::steady_clock::now();
    saver.save(snapshot);
    state.SetIterationTime(Seconds(std::chrono::steady_clock::now() - start).count());
    saver.wait();
  }
  state.SetBytesProcessed(saver.times().bytes / saver.times().saves * state.iterations());
  std::filesystem::remove_all(folder());
}
BENCHMARK(save)->UseManualTime()->Unit(benchmark::kMillisecond);

void save_to_disk(benchmark::State& state) {
  const Training training;
  Saver saver(folder(), {.keep = {.keep_last = 2}, .async = false});
  saver.save(training.snapshot());
  int64_t step = 1;
  for (auto _ : state) {
    Snapshot snapshot = training.snapshot();
    snapshot.step = step++;
    saver.save(snapshot);
  }
  std::filesystem::remove_all(folder());
}
BENCHMARK(save_to_disk)->UseRealTime()->Unit(benchmark::kMillisecond);

void step(benchmark::State& state) {
  Training training;
  training.step();
  for (auto _ : state) {
    training.step();
  }
}
BENCHMARK(step)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(40);

void step_saving(benchmark::State& state) {
  constexpr int64_t kEvery = 20;
  Training training;
  training.step();
  Saver saver(folder(), {.keep = {.keep_last = 2}});
  saver.save(training.snapshot());
  saver.wait();
  const SaverTimes before = saver.times();
  const auto start = std::chrono::steady_clock::now();
  int64_t steps = 0;
  for (auto _ : state) {
    training.step();
    if (++steps % kEvery == 0) {
      Snapshot snapshot = training.snapshot();
      snapshot.step = steps;
      saver.save(snapshot);
    }
  }
  const double step_s =
      Seconds(std::chrono::steady_clock::now() - start).count() / static_cast<double>(steps);
  saver.wait();
  const SaverTimes after = saver.times();
  const double stall_s = Seconds(after.stalled - before.stalled).count() /
                         static_cast<double>(after.saves - before.saves);
  state.counters["save_ms"] = 1e3 * stall_s;
  state.counters["stall_at_100"] = stall_s / (100 * step_s);
  std::filesystem::remove_all(folder());
}
BENCHMARK(step_saving)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(40);

}  // namespace
}  // namespace argosy::checkpoint
