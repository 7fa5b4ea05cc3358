// Strategies that save traffic, through DistributedStrategy and files of checkpoints.
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/training_saver.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/fleet/fleet_test_support.h"
#include "argosy/fleet/updates.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/optim/sgd.h"

#include "tests/support/error_text.h"

namespace argosy::fleet {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& json) {
  return test::error_text<ConfigError>([&] { (void)DistributedStrategy::from_json(json); });
}

TEST(StrategyTraffic, HasPaddlesNamesAndDefaults) {
  const auto given = DistributedStrategy::from_json(
      R"({"dgc": true, "dgc_configs": {"rampup_begin_step": 5, "sparsity": [0.9, 0.999]}})");
  EXPECT_EQ(given.dgc_configs.rampup_begin_step, 5);
  EXPECT_EQ(given.dgc_configs.rampup_step, 1);
  EXPECT_EQ(given.dgc_configs.sparsity, (std::vector<double>{0.9, 0.999}));
  const DistributedStrategy plain;
  EXPECT_EQ(plain.dgc_configs.rampup_begin_step, 0);
  EXPECT_EQ(plain.dgc_configs.sparsity, std::vector<double>{0.999});
  EXPECT_EQ(plain.localsgd_configs.k_steps, 1);
  EXPECT_EQ(plain.localsgd_configs.begin_step, 1);
  EXPECT_EQ(plain.adaptive_localsgd_configs.init_k_steps, 1);
  EXPECT_EQ(plain.adaptive_localsgd_configs.begin_step, 1);
  EXPECT_EQ(DistributedStrategy::from_json(given.to_json()).to_json(), given.to_json());
}

TEST(StrategyTraffic, NamesWhatExcludesEachOther) {
  EXPECT_THAT(refusal(R"({"localsgd": true, "dgc": true})"),
              HasSubstr("localsgd and dgc exclude each other"));
  EXPECT_THAT(refusal(R"({"diloco": true, "sharding": true})"),
              HasSubstr("diloco excludes sharding"));
  EXPECT_THAT(refusal(R"({"dgc": true, "fp16_allreduce": true})"),
              HasSubstr("dgc excludes fp16_allreduce"));
  EXPECT_THAT(refusal(R"({"power_sgd": true, "gradient_merge": true})"),
              HasSubstr("power_sgd excludes gradient_merge"));
  EXPECT_THAT(refusal(R"({"power_sgd": true, "find_unused_parameters": true})"),
              HasSubstr("power_sgd excludes find_unused_parameters"));
  EXPECT_THAT(refusal(R"({"localsgd": true, "amp": true, "amp_configs": {"dtype": "float16"}})"),
              HasSubstr("localsgd excludes amp in float16"));
  EXPECT_THAT(refusal(R"({"localsgd_configs": {"k_steps": 0}})"),
              HasSubstr("localsgd_configs.k_steps: expected at least 1, got 0"));
  EXPECT_THAT(refusal(R"({"dgc_configs": {"sparsity": 0.9}})"),
              HasSubstr("dgc_configs.sparsity: expected a list of numbers, got 0.9"));
  EXPECT_THAT(refusal(R"({"diloco_configs": {"bits": 5}})"),
              HasSubstr("diloco_configs.bits: expected 32, 8 or 4, got 5"));
  EXPECT_THAT(refusal(R"({"diloco_configs": {"sync_every": 100}})"),
              HasSubstr("diloco_configs says something, and diloco is off"));
}

torch::nn::Sequential wide_net() {
  torch::manual_seed(3);
  return torch::nn::Sequential(
      torch::nn::Linear(32, 600), torch::nn::Tanh(), torch::nn::Linear(600, 32));
}

struct Way {
  const char* name;
  DistributedStrategy strategy;
  bool adam = false;
};

std::vector<Way> ways() {
  return {
      {"powersgd", {.power_sgd = true, .power_sgd_configs = {.start_power_sgd_iter = 1}}, true},
      {"dgc", {.dgc = true, .dgc_configs = {.rampup_begin_step = 1, .sparsity = {0.99}}}},
      {"localsgd", {.localsgd = true, .localsgd_configs = {.k_steps = 3}}},
      {"adaptive", {.adaptive_localsgd = true, .adaptive_localsgd_configs = {.init_k_steps = 2}}},
      {"diloco", {.diloco = true, .diloco_configs = {.sync_every = 3}}, true},
      {"streaming",
       {.diloco = true,
        .diloco_configs = {.sync_every = 4,
                           .fragments = 2,
                           .fragment_sync_delay = 1,
                           .fragment_update_alpha = 0.5,
                           .bits = 8}},
       true}};
}

/// A training that begins anew, or goes on from what the folder has, up to `steps` steps.
std::string trained(const Way& way, const std::string& folder, int64_t steps) {
  const auto model = distributed_model(wide_net());
  auto copy = model;
  optim::Optimizer inner = way.adam ? optim::Optimizer(optim::AdamW(model, {.lr = 0.01}))
                                    : optim::Optimizer(optim::Momentum(model, {.lr = 0.05}));
  optim::Optimizer optimizer = distributed_optimizer(inner);
  EXPECT_NE(optimizer.impl(), inner.impl());
  EXPECT_EQ(distributed_optimizer(optimizer).impl(), optimizer.impl()) << "wrapped twice";
  checkpoint::TrainingSaver saver(folder, {}, group());
  saver.add(copy).add(optimizer);
  checkpoint::TrainingProgress at = saver.resume();
  for (; at.step < steps;) {
    const at::Tensor x =
        torch::sin(torch::arange(128, at::kFloat).view({4, 32}) + at.step + 10 * worker_index());
    const at::Tensor loss = copy.forward<at::Tensor>(x).square().mean();
    loss.backward();
    optimizer.note_loss(loss.item<double>());
    optimizer.step();
    optimizer.zero_grad();
    ++at.step;
  }
  saver.save(at);
  saver.wait();
  std::string bits;
  for (const at::Tensor& parameter : copy.parameters()) {
    const at::Tensor flat = parameter.detach().contiguous();
    bits.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  return bits;
}

TEST(StrategyTraffic, CheckpointsOfAllWaysGoOnWithTheSameBits) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    run_job(
        2,
        [&](const std::string& folder) {
          const std::string through = trained(way, folder + "/through", 9);
          trained(way, folder + "/parts", 4);
          trained(way, folder + "/parts", 5);
          EXPECT_TRUE(trained(way, folder + "/parts", 9) == through);
          const auto all = comm::all_gather_object(through, group());
          const std::string name = way.name;
          if (name != "adaptive") {  // whose turn the loss says
            EXPECT_EQ(all[0] == all[1], name != "localsgd" && name != "streaming");
          }
        },
        way.strategy);
  }
}

TEST(StrategyTraffic, ACheckpointOfTwoProcessesIsRefusedByThree) {
  const test::TempDir kept;
  const Way way = ways()[2];
  run_job(
      2, [&](const std::string&) { trained(way, kept.path().string() + "/two", 4); }, way.strategy);
  run_job(
      3,
      [&](const std::string&) {
        EXPECT_THAT(test::error_text<CheckpointError>(
                        [&] { trained(way, kept.path().string() + "/two", 8); }),
                    HasSubstr("2"));
      },
      way.strategy);
}

TEST(StrategyTraffic, OptimizersThatItDoesNotGoWithAreNamed) {
  for (const Way& way : ways()) {
    if (way.adam) {
      continue;
    }
    run_job(
        2,
        [&](const std::string&) {
          const auto model = distributed_model(wide_net());
          EXPECT_THAT(test::error_text<UsageError>(
                          [&] { (void)distributed_optimizer(optim::Adam(model, {.lr = 0.01})); }),
                      HasSubstr("got Adam"));
        },
        way.strategy);
  }
}

/// Trains up to `steps` updates of four virtual ranks. Returns the shared weights' bits.
std::string trained_by_updates(const Way& way, const std::string& folder, int64_t steps) {
  auto model = distributed_model(wide_net());
  optim::Optimizer inner = way.adam ? optim::Optimizer(optim::AdamW(model, {.lr = 0.01}))
                                    : optim::Optimizer(optim::Momentum(model, {.lr = 0.05}));
  optim::Optimizer optimizer = distributed_optimizer(inner);
  const at::Tensor samples = torch::sin(torch::arange(64 * 32, at::kFloat)).view({64, 32});
  data::TensorDataset<1> set(samples);
  data::DataLoader loader(set, distributed_batch_sampler(64, {.batch_size = 2, .shuffle = true}));
  checkpoint::TrainingSaver saver(folder, {}, group());
  saver.add(model).add(optimizer).add(loader);
  checkpoint::TrainingProgress at = saver.resume();
  for (; at.step < steps; ++at.epoch) {
    for (auto& update : updates(loader)) {
      for (auto& [x] : update) {
        const at::Tensor loss = model.forward<at::Tensor>(x).square().mean();
        loss.backward();
        optimizer.note_loss(loss.item<double>());
      }
      optimizer.step();
      optimizer.zero_grad();
      if (++at.step == steps) {
        saver.save(at);
        saver.wait();
        break;
      }
    }
  }
  optimizer.use_shared_weights(true);
  std::string bits;
  for (const at::Tensor& parameter : model.parameters()) {
    const at::Tensor flat = parameter.detach().contiguous();
    bits.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  return bits;
}

TEST(StrategyTraffic, VirtualRanksHaveTheSameBitsOnAnyNumberOfProcesses) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    DistributedStrategy strategy = way.strategy;
    strategy.virtual_ranks = 4;
    const test::TempDir kept;
    const auto bits_of = [&](int processes, const std::string& name, int64_t steps) {
      const std::string folder = kept.path().string() + "/";
      run_job(
          processes,
          [&](const std::string&) {
            const std::string bits = trained_by_updates(way, folder + name, steps);
            std::ofstream(folder + name + std::to_string(worker_index())) << bits;
          },
          strategy);
      std::stringstream text;
      text << std::ifstream(folder + name + std::to_string(processes - 1)).rdbuf();
      return text.str();
    };
    const std::string expected = bits_of(4, "four", 14);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(bits_of(1, "one", 14) == expected);
    EXPECT_TRUE(bits_of(2, "two", 14) == expected);
    static_cast<void>(bits_of(4, "parts", 3));
    static_cast<void>(bits_of(1, "parts", 7));
    EXPECT_TRUE(bits_of(3, "parts", 14) == expected);
  }
}

}  // namespace
}  // namespace argosy::fleet
