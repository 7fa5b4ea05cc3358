/// fit(), evaluate() and checkpoints where ranks divide the parameters.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/fleet/fleet.h"
#include "argosy/optim/adam.h"
#include "argosy/train/resume_test_support.h"
#include "argosy/train/train_test_support.h"

namespace argosy::train {
namespace {

using testing::blobs;
using testing::WideNet;

fleet::DistributedStrategy divided(int64_t stage, int64_t virtual_ranks) {
  return {.virtual_ranks = virtual_ranks,
          .sharding = true,
          .sharding_configs = {.stage = stage, .unit_bytes = 0}};
}

struct Outcome {
  std::string hash{};
  std::string logs{};
};

/// What ranks of this job come to in two epochs; `stop` leaves after so many updates.
Outcome train_on(int ranks,
                 const fleet::DistributedStrategy& strategy,
                 const std::string& run_dir,
                 int64_t stop = 0) {
  const test::TempDir folder;
  const std::string file = (folder.path() / "outcome").string();
  test::run_ranks(
      ranks,
      [&](int rank) {
        fleet::init(strategy,
                    {.init_method = "file://" + folder.path().string() + "/store",
                     .timeout = std::chrono::seconds(30),
                     .rank = rank,
                     .world_size = ranks});
        torch::manual_seed(7);
        WideNet net;
        Model model(net);
        model.prepare(
            optim::AdamW(net, {.lr = 0.02, .grad_clip = optim::ClipGradByGlobalNorm(0.5)}),
            loss::CrossEntropy(),
            {metrics::Accuracy()},
            {.ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
        FitOptions options{.batch_size = 4, .epochs = 2, .log = {.verbose = 0}};
        if (!run_dir.empty()) {
          options.checkpoint = {.dir = run_dir, .on_signal = OnSignal::kSaveAndReturn};
          options.resume = Resume::kAuto;
        }
        if (stop > 0) {
          options.callbacks.push_back(testing::SignalAt(stop));
        }
        (void)model.fit(blobs(48), blobs(25), options);
        const Logs logs = model.evaluate(blobs(23), {.batch_size = 4, .verbose = 0});
        const std::string hash = [&] {
          const fleet::detail::WholeModels whole;
          return checkpoint::weights_hash(engine::state_dict(net));
        }();
        if (rank == 0) {
          std::ofstream(file) << hash << "\n" << logs.to_string();
        }
        fleet::stop_worker();
      },
      {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(90)});
  std::ifstream in(file);
  Outcome outcome;
  std::getline(in, outcome.hash);
  std::getline(in, outcome.logs);
  return outcome;
}

TEST(ShardedFit, HasTheBitsOfRanksThatHaveEverything) {
  const Outcome plain = train_on(2, {.virtual_ranks = 4}, "");
  EXPECT_NE(plain.hash, "");
  for (const int64_t stage : {2, 3}) {
    for (const int ranks : {1, 2, 3, 4, 5}) {
      const Outcome sharded = train_on(ranks, divided(stage, 4), "");
      EXPECT_EQ(sharded.hash, plain.hash) << "stage " << stage << ", ranks " << ranks;
      EXPECT_EQ(sharded.logs, plain.logs) << "stage " << stage << ", ranks " << ranks;
    }
  }
}

TEST(ShardedFit, WhatSomeRanksLeftOthersGoOnWith) {
  const Outcome plain = train_on(2, {.virtual_ranks = 4}, "");
  for (const auto& [before, after] : {std::pair(2, 4), {4, 3}, {3, 5}}) {
    const test::TempDir folder;
    const std::string run = (folder.path() / "run").string();
    (void)train_on(before, divided(3, 4), run, /*stop=*/2);
    const Outcome resumed = train_on(after, divided(3, 4), run);
    EXPECT_EQ(resumed.hash, plain.hash) << before << " ranks, then " << after;
  }
}

/// Weights, state and average, which evaluate() uses.
TEST(ShardedFit, CheckpointsHavePartsThatFitAnyOtherDivision) {
  const Outcome plain = train_on(2, {.virtual_ranks = 4}, "");
  const test::TempDir folder;
  const std::string run = (folder.path() / "run").string();
  (void)train_on(4, divided(3, 4), run, /*stop=*/2);
  const auto saved = checkpoint::find_newest(run);
  ASSERT_TRUE(saved.manifest.has_value());
  EXPECT_EQ(saved.manifest->version(), 2);
  for (const checkpoint::ManifestTensor& tensor : saved.manifest->tensors) {
    const bool small = numel(tensor) <= 256;  // a part's beginnings are that far apart
    if (tensor.part.starts_with("rank")) {
      continue;
    }
    EXPECT_TRUE(small || tensor.pieces.size() > 1) << tensor.part << " " << tensor.name;
  }
  const std::vector<std::pair<int, fleet::DistributedStrategy>> others{{3, divided(3, 4)},
                                                                       {2, divided(2, 4)},
                                                                       {1, divided(3, 4)},
                                                                       {2, {.virtual_ranks = 4}},
                                                                       {1, {.virtual_ranks = 4}}};
  for (size_t i = 0; i < others.size(); ++i) {
    const std::string copy = run + std::to_string(i);
    std::filesystem::copy(run, copy, std::filesystem::copy_options::recursive);
    const Outcome resumed = train_on(others[i].first, others[i].second, copy);
    EXPECT_EQ(resumed.hash, plain.hash) << "case " << i;
    EXPECT_EQ(resumed.logs, plain.logs) << "case " << i;
  }
}

/// 16-bit parameters, whose masters a checkpoint has among the optimizer's state.
TEST(ShardedFit, PureTypesHaveTheSameBitsOnAnyNumberOfProcesses) {
  fleet::DistributedStrategy pure = divided(3, 4);
  pure.amp = true;
  pure.amp_configs = {.use_pure_bf16 = true, .master_grad = true};
  const Outcome whole = train_on(1, pure, "");
  EXPECT_NE(whole.hash, "");
  EXPECT_NE(whole.hash, train_on(1, divided(3, 4), "").hash);
  EXPECT_EQ(train_on(3, pure, "").hash, whole.hash);
  const test::TempDir folder;
  const std::string run = (folder.path() / "run").string();
  (void)train_on(4, pure, run, /*stop=*/2);
  EXPECT_EQ(train_on(3, pure, run).hash, whole.hash);
}

/// Ranks with the same part of the masters, one of which finds its files damaged: nobody waits for
/// it, and all are told.
TEST(ShardedFit, ARankThatCannotReadItsMastersIsNamedOnAll) {
  namespace fs = std::filesystem;
  fleet::DistributedStrategy pure = divided(3, 0);
  pure.hybrid_configs = {{"dp", 2}, {"sharding", 2}};
  pure.amp = true;
  pure.amp_configs = {.use_pure_bf16 = true, .master_grad = true};
  const test::TempDir folder;
  testing::run_job(
      4,
      [&](int rank) {
        const WideNet net;
        Model model(net);
        model.prepare(optim::AdamW(net, {.lr = 0.02}), loss::CrossEntropy());
        (void)model.fit(blobs(48), {.batch_size = 4, .log = {.verbose = 0}});
        fs::path saved = folder.path() / "saved";
        model.save(saved.string());
        if (rank == 2) {
          fs::copy(saved, folder.path() / "damaged", fs::copy_options::recursive);
          saved = folder.path() / "damaged";
          for (const auto& file : fs::directory_iterator(saved)) {
            if (file.path().filename().string().starts_with("optimizer")) {
              std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::ate)
                      .seekp(-1, std::ios::end)
                  << '?';
            }
          }
        }
        EXPECT_THAT(test::error_text<CheckpointError>([&] { (void)model.load(saved.string()); }),
                    ::testing::AllOf(::testing::HasSubstr("rank 2 failed"),
                                     ::testing::HasSubstr("damaged: ")));
      },
      pure);
}

/// As a job that was started without a word of virtual ranks.
TEST(ShardedFit, TheCheckpointSaysHowManyVirtualRanks) {
  const test::TempDir folder;
  const std::string run = (folder.path() / "run").string();
  const Outcome plain = train_on(4, {}, "");
  (void)train_on(4, divided(3, 0), run, /*stop=*/2);
  const Outcome resumed = train_on(3, divided(3, 0), run);
  EXPECT_EQ(resumed.hash, plain.hash);
}

TEST(ShardedFit, SavesAndLoadsWholeWeights) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "weights.pt").string();
  testing::run_job(
      2,
      [&](int) {
        SmallNet net = small_net();
        Model model(net);
        model.prepare(optim::AdamW(net, {.lr = 0.02}),
                      loss::CrossEntropy(),
                      {},
                      {.ema = optim::ExponentialMovingAverageOptions{.decay = 0.5}});
        (void)model.fit(blobs(48), {.batch_size = 4, .log = {.verbose = 0}});
        model.save(path);
        const Logs before = model.evaluate(blobs(24), {.batch_size = 4, .verbose = 0});
        (void)model.fit(blobs(48), {.batch_size = 4, .log = {.verbose = 0}});
        Model loaded = sgd_model(small_net(), {.lr = 0.1}, {});
        EXPECT_EQ(loaded.load(path).loaded.size(), 4U);
        const Logs after = loaded.evaluate(blobs(24), {.batch_size = 4, .verbose = 0});
        EXPECT_EQ(after.to_string(), before.to_string());
      },
      divided(3, 2));
}

}  // namespace
}  // namespace argosy::train
