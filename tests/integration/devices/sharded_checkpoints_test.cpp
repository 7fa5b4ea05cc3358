/// Checkpoints of models that ranks divide, on devices over NCCL. Other numbers of ranks resume
/// them, on devices and on the CPU, and come to the bits of a run that nothing has disturbed.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/fleet/fleet.h"
#include "argosy/loss/cross_entropy.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/adam.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/on_devices.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::train {
namespace {

namespace fs = std::filesystem;
using testing::blobs;
using testing::WideNet;

constexpr int64_t kVirtualRanks = 4;

fleet::DistributedStrategy divided() {
  return {.virtual_ranks = kVirtualRanks,
          .sharding = true,
          .sharding_configs = {.stage = 3, .unit_bytes = 0}};
}

struct Job {
  int ranks = 1;
  bool on_devices = true;
};

enum class Way {
  kWhole,    ///< from the beginning to the end
  kCut,      ///< saves amid the first epoch, and leaves
  kResumed,  ///< goes on from there, and has other weights before
};

/// Where a job leaves what it comes to.
struct Outcome {
  explicit Outcome(const fs::path& stem) : weights(stem), figures(stem) {
    weights += ".safetensors";
    figures += ".txt";
  }
  fs::path weights, figures;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ShardedCheckpointsOverNccl : public test::OnDevicesInProcesses {
 protected:
  /// Trains for two epochs of three updates. `run`: where checkpoints are.
  void train(const Job& job,
             const fleet::DistributedStrategy& strategy,
             Way way,
             const fs::path& run,
             const Outcome& outcome) const {
    const test::TempDir folder;
    test::run_ranks(
        job.ranks,
        [&](int rank) {
          init(job, rank, strategy, folder.path() / "store");
          torch::manual_seed(way == Way::kResumed ? 99 : 7);
          WideNet net;
          net->to(fleet::device());
          Model model(net);
          model.prepare(
              optim::AdamW(net, {.lr = 0.02, .grad_clip = optim::ClipGradByGlobalNorm(0.5)}),
              loss::CrossEntropy(),
              {metrics::Accuracy()},
              {.ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
          FitOptions options{
              .batch_size = 4,
              .epochs = 2,
              .resume = way == Way::kResumed ? Resume::kMust : Resume::kNever,
              .data = {.seed = 5},
              .checkpoint = {.dir = run.string(), .on_signal = OnSignal::kSaveAndReturn},
              .log = {.verbose = 0}};
          if (way == Way::kCut) {
            options.callbacks.push_back(testing::SignalAt(2));
          }
          const History history = model.fit(blobs(48), options);
          EXPECT_EQ(history.ended, way == Way::kCut ? Ended::kPreempted : Ended::kFinished);
          EXPECT_EQ(history.steps, way == Way::kCut ? 2 : 6);
          EXPECT_EQ(net->parameters()[0].device(), fleet::device());
          // With the averages of the weights, which belong to a checkpoint too.
          const Logs logs = model.evaluate(blobs(23), {.batch_size = 4, .verbose = 0});
          fleet::save(net, outcome.weights.string());
          if (rank == 0) {
            std::ofstream(outcome.figures) << logs.to_string();
          }
          fleet::stop_worker();
        },
        {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
  }

  void expect_same(const Outcome& got, const Outcome& wanted) const {
    if (!is_cuda()) {
      EXPECT_EQ(text_of(got.figures), text_of(wanted.figures));
    }
    const auto compare = [&](int) {  // in a process, for those to come must not find torch in use
      const auto weights = checkpoint::read_weights(got.weights.string());
      EXPECT_EQ(weights.size(), 4U);
      for (const auto& [name, tensor] : checkpoint::read_weights(wanted.weights.string())) {
        expect_equal(weights.at(name), tensor, name);
      }
    };
    test::run_ranks(1, compare, {.mode = test::RankMode::kProcesses});
  }

  /// What `before` leaves `after` resumes, and comes to what `undisturbed` of `reference` comes to.
  void expect_resumed(const Job& before,
                      const Job& after,
                      const fleet::DistributedStrategy& strategy,
                      const Job& undisturbed,
                      const fleet::DistributedStrategy& reference) const {
    const test::TempDir folder;
    const Outcome wanted(folder.path() / "wanted"), cut(folder.path() / "cut"),
        got(folder.path() / "got");
    const fs::path run = folder.path() / "run";
    train(undisturbed, reference, Way::kWhole, folder.path() / "whole", wanted);
    train(before, strategy, Way::kCut, run, cut);
    expect_parts_of(run);
    train(after, strategy, Way::kResumed, run, got);
    expect_same(got, wanted);
  }

 private:
  void init(const Job& job,
            int rank,
            const fleet::DistributedStrategy& strategy,
            const fs::path& store) const {
    torch::set_num_threads(1);
    if (!is_cuda()) {
      ::setenv("ARGOSY_NCCL_LIBRARY", ARGOSY_FAKE_NCCL, 1);
    }
    const at::Device own = job.on_devices ? device_over_nccl(rank, job.ranks) : at::kCPU;
    fleet::init(strategy,
                {.init_method = "file://" + store.string(),
                 .backend = job.on_devices ? "cpu:shm,cuda:nccl" : "shm",
                 .timeout = std::chrono::seconds(30),
                 .rank = rank,
                 .world_size = job.ranks},
                own.str());
  }
  /// Several ranks have written each large tensor: the weights, their averages and their state.
  static void expect_parts_of(const fs::path& run) {
    const auto saved = checkpoint::find_newest(run.string());
    ASSERT_TRUE(saved.manifest.has_value());
    int large = 0;
    for (const checkpoint::ManifestTensor& tensor : saved.manifest->tensors) {
      const bool is_large = !tensor.part.starts_with("rank") && numel(tensor) > 256;
      large += is_large ? 1 : 0;
      EXPECT_TRUE(!is_large || tensor.pieces.size() > 1) << tensor.part << " " << tensor.name;
    }
    EXPECT_GE(large, 8) << "two weights, each with an average and two moments";
  }
};

constexpr Job kUndisturbed{.ranks = 2};

TEST_P(ShardedCheckpointsOverNccl, OfTwoRanksAreResumedByThree) {
  expect_resumed(
      {.ranks = 2}, {.ranks = 3}, divided(), kUndisturbed, {.virtual_ranks = kVirtualRanks});
}

TEST_P(ShardedCheckpointsOverNccl, OfDevicesAreResumedOnTheCpu) {
  expect_resumed({.ranks = 3},
                 {.ranks = 2, .on_devices = false},
                 divided(),
                 kUndisturbed,
                 {.virtual_ranks = kVirtualRanks});
}

TEST_P(ShardedCheckpointsOverNccl, OfTheCpuAreResumedOnDevices) {
  expect_resumed({.ranks = 2, .on_devices = false},
                 {.ranks = 3},
                 divided(),
                 kUndisturbed,
                 {.virtual_ranks = kVirtualRanks});
}

/// 16-bit parameters, whose masters are in the optimizer's state.
TEST_P(ShardedCheckpointsOverNccl, OfPureTypesAreResumed) {
  fleet::DistributedStrategy pure = divided();
  pure.amp = true;
  pure.amp_configs = {.use_pure_bf16 = true, .master_grad = true};
  expect_resumed({.ranks = 3}, {.ranks = 2}, pure, /*undisturbed=*/{.ranks = 1}, pure);
}

ARGOSY_ON_DEVICES(ShardedCheckpointsOverNccl);

}  // namespace
}  // namespace argosy::train
