#include "argosy/fleet/fleet.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/parts.h"
#include "argosy/fleet/fleet_test_support.h"
#include "argosy/fleet/group_sharded.h"
#include "argosy/fleet/progress.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/sharded/group_sharded.h"

#include "tests/support/error_text.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Fleet, BeforeInitEveryFunctionSaysSo) {
  EXPECT_FALSE(is_initialized());
  EXPECT_EQ(test::error_text<Error>([] { (void)worker_num(); }),
            "[fleet.worker_num] the job is not joined: call fleet::init() first");
  EXPECT_THAT(test::error_text<Error>([] { barrier_worker(); }),
              HasSubstr("call fleet::init() first"));
}

TEST(Fleet, AScalersRanksSkipTheSameUpdates) {
  run_job(2, [](const std::string& /*folder*/) {
    const at::Tensor weight = torch::ones({2}, torch::requires_grad());  // each rank has its own
    optim::SGD optimizer(engine::NamedTensors{{"w", weight}}, {.lr = 0.5});
    optim::GradScaler scaler = distributed_scaler(optim::GradScaler({.init_scale = 8}));
    const float factor = worker_index() == 1 ? std::numeric_limits<float>::infinity() : 1.0F;
    scaler.scale((weight * factor).sum()).backward();
    EXPECT_FALSE(scaler.step(optimizer));
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), 4);
    optimizer.zero_grad();
    scaler.scale(weight.sum()).backward();
    EXPECT_TRUE(scaler.step(optimizer));
    EXPECT_EQ(weight[0].item<float>(), 0.5F);
  });
}

TEST(Fleet, DifferentStrategiesAreFoundByEveryRank) {
  const test::TempDir folder;
  test::run_ranks(3,
                  [&](int rank) {
                    DistributedStrategy strategy;
                    strategy.fp16_allreduce = rank == 2;
                    const std::string text = test::error_text<Error>([&] {
                      init(strategy,
                           {.init_method = "file://" + folder.path().string() + "/store",
                            .timeout = 20s,
                            .rank = rank,
                            .world_size = 3});
                    });
                    EXPECT_THAT(text, HasSubstr("[fleet.init] rank 2 has the strategy"));
                    EXPECT_FALSE(is_initialized());
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = 60s});
}

TEST(Fleet, AfterStopWorkerASecondJobCanBegin) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    for (int job = 0; job < 2; ++job) {
                      init({},
                           {.init_method = "file://" + folder.path().string() + "/store",
                            .timeout = 20s,
                            .rank = rank,
                            .world_size = 2});
                      EXPECT_EQ(worker_num(), 2);
                      barrier_worker();
                      stop_worker();
                      EXPECT_FALSE(is_initialized());
                    }
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = 60s});
}

TEST(Fleet, RanksKnowTheirPlace) {
  run_job(3, [](const std::string&) {
    EXPECT_EQ(worker_num(), 3);
    EXPECT_EQ(get_world_size(), 3);
    EXPECT_EQ(is_first_worker(), worker_index() == 0);
    auto sum = torch::full({2}, worker_index(), torch::kInt64);
    all_reduce(sum);
    EXPECT_EQ(sum[0].item<int64_t>(), 3);
    auto all = all_gather(torch::full({1}, worker_index(), torch::kInt64));
    EXPECT_EQ(torch::cat(all).sum().item<int64_t>(), 3);
    auto from_last = torch::full({1}, worker_index(), torch::kInt64);
    broadcast(from_last, {.root = 2});
    EXPECT_EQ(from_last.item<int64_t>(), 2);
    barrier_worker();
    EXPECT_THAT(test::error_text<Error>([] { init(); }), HasSubstr("called twice"));
  });
}

TEST(Fleet, FileShardsAreContiguousAndTheFirstAreLonger) {
  run_job(2, [](const std::string&) {
    const std::vector<std::string> all{"a", "b", "c", "d", "e"};
    if (is_first_worker()) {
      EXPECT_THAT(get_file_shard(all), ElementsAre("a", "b", "c"));
      EXPECT_THAT(get_file_shard({"a"}), ElementsAre("a"));
    } else {
      EXPECT_THAT(get_file_shard(all), ElementsAre("d", "e"));
      EXPECT_THAT(get_file_shard({"a"}), IsEmpty());
    }
  });
}

TEST(Fleet, SamplersGetRankAndSize) {
  run_job(2, [](const std::string&) {
    auto sampler = distributed_batch_sampler(10, {.batch_size = 2});
    const data::BatchPlan plan = sampler.plan(0);
    const std::vector<int64_t> first(plan[0].begin(), plan[0].end());
    if (is_first_worker()) {
      EXPECT_THAT(first, ElementsAre(0, 1));
    } else {
      EXPECT_THAT(first, ElementsAre(2, 3));
    }
    EXPECT_EQ(
        test::error_text<UsageError>([] { (void)distributed_batch_sampler(0, {.shuffle = true}); }),
        "[fleet.distributed_batch_sampler] the data set is empty: there is nothing to shuffle. Is "
        "its "
        "path right?");
    const std::vector<int64_t> lengths{4, 1, 3, 2};
    const auto buckets = bucket_batch_sampler(lengths, {.batch_size = 2, .shuffle = false});
    const data::BatchPlan bucket = buckets.plan(0);
    const std::vector<int64_t> of_like_length(bucket[0].begin(), bucket[0].end());
    if (is_first_worker()) {
      EXPECT_THAT(of_like_length, ElementsAre(1, 3));
    } else {
      EXPECT_THAT(of_like_length, ElementsAre(2, 0));
    }
    const auto evaluation = evaluation_sampler(3, {.batch_size = 2});
    EXPECT_EQ(evaluation.plan(0).indices().size(), is_first_worker() ? 2U : 1U);
  });
}

TEST(Fleet, AnOptimizerOfAnUndistributedModelIsRefusedByName) {
  run_job(2, [](const std::string&) {
    torch::nn::Linear bare(2, 1);
    EXPECT_THAT(test::error_text<Error>(
                    [&] { (void)distributed_optimizer(optim::SGD(bare, {.lr = 0.1})); }),
                HasSubstr("parameter \"weight\" is not of a distributed model"));
    auto model = distributed_model(torch::nn::Linear(2, 1));
    auto optimizer = distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
    // Each rank feeds its own number: the averaged gradient of the bias is 1, of the weight 0.5.
    model(torch::full({1, 2}, worker_index(), torch::kFloat32)).sum().backward();
    const auto before = model.module()->weight.detach().clone();
    optimizer.step();
    EXPECT_TRUE(torch::allclose(
        before - model.module()->weight.detach(), torch::full({1, 2}, 0.05), 1e-6, 1e-7));
  });
}

TEST(Fleet, GradientsAreScatteredWhereThatIsAskedFor) {
  const auto train =
      [](int ranks, const std::string& backend, const DistributedStrategy& strategy) {
        ::setenv("ARGOSY_BACKEND", backend.c_str(), 1);
        run_job(
            ranks,
            [&](const std::string&) {
              torch::nn::Linear net(3, 5);
              auto model = distributed_model(net);
              const auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 0.1}));
              EXPECT_EQ(optimizer.impl()->sharded() != nullptr,
                        strategy.scatter_gradients && ranks > 1 && backend == "gloo");
              (void)optimizer.state_dict();
            },
            strategy);
        ::unsetenv("ARGOSY_BACKEND");
      };
  train(2, "gloo", {.scatter_gradients = true});
  train(2, "gloo", {});
  train(2, "shm", {.scatter_gradients = true});
  train(1, "gloo", {.scatter_gradients = true});
}

TEST(Fleet, ShardingOfStageOneLeavesGradientsWhole) {
  for (const int64_t stage : {1, 2}) {
    ::setenv("ARGOSY_BACKEND", "gloo", 1);
    run_job(2,
            [&](const std::string&) {
              auto model = distributed_model(torch::nn::Linear(3, 5));
              auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 0.1}));
              ASSERT_NE(optimizer.impl()->sharded(), nullptr);
              EXPECT_EQ(optimizer.impl()->sharded()->has_whole_gradients(), stage == 1);
              model(torch::ones({2, 3})).sum().backward();
              EXPECT_EQ(model->weight.grad().storage().data() != nullptr, stage == 1);
              optimizer.step();
              (void)optimizer.state_dict();
            },
            {.sharding = true, .sharding_configs = {.stage = stage}});
    ::unsetenv("ARGOSY_BACKEND");
  }
}

/// The row of layers of a user, as a Sequential.
torch::nn::Sequential rows() {
  torch::manual_seed(3);
  torch::nn::Sequential all;
  for (int i = 0; i < 3; ++i) {
    all->push_back(torch::nn::Linear(4, 4));
    all->push_back(torch::nn::Dropout(0.3));
  }
  return all;
}

TEST(Fleet, RecomputeOfTheStrategyHasTheBits) {
  for (const bool sharding : {false, true}) {
    run_job(2,
            [&](const std::string&) {
              torch::nn::Sequential net = rows();
              auto model = distributed_model(net);
              torch::nn::Sequential same = rows();
              parallel::DistributedDataParallel plain(same, group());
              const auto grads = [&](auto& wrapper) {
                torch::manual_seed(7);
                const at::Tensor x = torch::ones({3, 4}).mul(worker_index() + 1);
                wrapper.template forward<at::Tensor>(x).square().sum().backward();
                std::vector<at::Tensor> all;
                for (const at::Tensor& parameter : wrapper.parameters()) {
                  all.push_back(parameter.grad().clone());
                }
                return all;
              };
              const auto got = grads(model);
              const auto wanted = grads(plain);
              for (size_t i = 0; i < got.size(); ++i) {
                EXPECT_TRUE(got[i].equal(wanted[i])) << i;
              }
              EXPECT_THAT(test::error_text<UsageError>([&] { (void)net->clone(); }),
                          HasSubstr("computed again cannot be cloned"));
              EXPECT_THAT(test::error_text<UsageError>(
                              [] { (void)distributed_model(torch::nn::Linear(2, 1)); }),
                          HasSubstr("the model has no blocks"));
            },
            {.recompute = true, .sharding = sharding, .sharding_configs = {.unit_bytes = 0}});
  }
}

TEST(Fleet, AGroupShardedModelIsSavedWhole) {
  run_job(2, [&](const std::string& folder) {
    torch::nn::Linear net(3, 5);
    auto sharded =
        parallel::group_sharded_parallel(net, optim::Adam(net, {.lr = 0.1}), "p_g_os", group());
    detail::register_model(engine::named_parameters(sharded.model), sharded.model.core());
    sharded.model(torch::ones({2, 3})).sum().backward();
    sharded.optimizer.step();
    const std::string output = folder + "/out/model";
    save_group_sharded_model(sharded.model, output, &sharded.optimizer);
    const engine::StateDict weights = checkpoint::read_weights(output + "/model.pdparams");
    EXPECT_TRUE(weights.at("weight").t().equal(net->weight) ||
                weights.at("weight").equal(net->weight));
    const engine::StateDict state = checkpoint::read_weights(output + "/model.opt.safetensors");
    EXPECT_TRUE(state.at("weight/exp_avg")
                    .equal(sharded.optimizer.state_dict().find("weight")->at("exp_avg")));
  });
}

/// What the ranks of a job train, dividing as `level` says.
struct LevelTraining {
  LevelTraining(const std::string& level, double lr)
      : sharded(parallel::group_sharded_parallel(
            net, optim::AdamW(net, {.lr = lr}), level, group(), {.segment_size = 0})) {
    detail::register_model(engine::named_parameters(sharded.model), sharded.model.core());
  }
  void steps(int begin, int end) {
    for (int step = begin; step < end; ++step) {
      sharded.model(torch::linspace(-1, 1, 64).view({4, 16}) * (step + 1))
          .square()
          .sum()
          .backward();
      sharded.optimizer.step();
      sharded.optimizer.zero_grad();
    }
  }
  [[nodiscard]] std::string hash() {
    engine::StateDict all;
    const detail::WholeModels whole;
    for (const auto& [name, tensor] : engine::state_dict(net)) {
      all.set(name, tensor.clone());
    }
    for (const auto& [name, states] : sharded.optimizer.state_dict().parameters) {
      for (const auto& [state, tensor] : states) {
        all.set(name + "/" + state, engine::values_of(tensor).clone());
      }
    }
    return checkpoint::weights_hash(all);
  }
  torch::nn::Linear net = [] {
    torch::manual_seed(3);
    return torch::nn::Linear(16, 48);
  }();
  parallel::GroupSharded<torch::nn::Linear> sharded;
};

/// What other ranks saved, at another level, goes on with their rates.
TEST(Fleet, AGroupShardedModelGoesOnOnAnyNumberOfRanks) {
  const test::TempDir folder;
  const std::string output = (folder.path() / "out").string();
  const auto note = [&](const std::string& name, const std::string& text) {
    if (worker_index() == 0) {
      std::ofstream(folder.path() / name) << text;
    }
  };
  const auto noted = [&](const std::string& name) {
    std::ifstream in(folder.path() / name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  run_job(2, [&](const std::string& /*folder*/) {
    LevelTraining training("p_g_os", 0.1);
    training.steps(0, 2);
    training.sharded.optimizer.set_lr(0.03);
    save_group_sharded_model(training.sharded.model, output, &training.sharded.optimizer);
    note("saved", training.hash());
    training.steps(2, 4);
    note("trained", training.hash());
  });
  ASSERT_NE(noted("saved"), noted("trained"));
  for (const std::string level : {"os", "os_g", "p_g_os"}) {
    for (const int ranks : {1, 2, 3, 4}) {
      run_job(ranks, [&](const std::string& /*folder*/) {
        LevelTraining training(level, 0.5);
        training.steps(7, 8);  // which goes
        load_group_sharded_model(training.sharded.model, output, &training.sharded.optimizer);
        EXPECT_EQ(training.sharded.optimizer.lr(), 0.03);
        EXPECT_EQ(training.hash(), noted("saved")) << level << " on " << ranks;
        training.steps(2, 4);
        if (ranks != 3) {  // a third of three equal gradients is not one of them
          EXPECT_EQ(training.hash(), noted("trained")) << level << " on " << ranks;
        }
      });
    }
  }
}

/// Two groups of two ranks, with masters: what one rank cannot read is told by all.
TEST(Fleet, AGroupShardedModelTakesMastersAndTellsAllWhoCannotRead) {
  DistributedStrategy pure{.amp = true,
                           .amp_configs = {.use_pure_bf16 = true, .master_grad = true},
                           .hybrid_configs = {{"dp", 2}, {"sharding", 2}},
                           .sharding = true,
                           .sharding_configs = {.unit_bytes = 0}};
  run_job(
      4,
      [](const std::string& folder) {
        const auto make = [](double lr) {
          auto model = distributed_model(torch::nn::Linear(16, 48));
          auto optimizer = distributed_optimizer(optim::AdamW(model, {.lr = lr}));
          model(torch::ones({2, 16})).sum().backward();
          optimizer.step();
          return std::pair(model, optimizer);
        };
        auto [model, optimizer] = make(0.1);
        const std::string output = folder + "/out";
        save_group_sharded_model(model, output, &optimizer);
        const at::Tensor master =
            engine::values_of(optimizer.state_dict().find("weight")->at("master")).clone();
        auto [other, other_optimizer] = make(0.3);
        load_group_sharded_model(other, output, &other_optimizer);
        const optim::OptimizerState loaded = other_optimizer.state_dict();
        EXPECT_TRUE(engine::values_of(loaded.find("weight")->at("master")).equal(master));
        other(torch::ones({2, 16})).sum().backward();  // all have seen what was loaded
        other_optimizer.step();
        const std::string mine = worker_index() == 2 ? folder + "/elsewhere" : output;
        EXPECT_THAT(test::error_text<CheckpointError>([&, &to = other, &by = other_optimizer] {
                      load_group_sharded_model(to, mine, &by);
                    }),
                    HasSubstr("rank 2 failed"));
      },
      pure);
}

/// Ranks that divide their steps find out when one makes another.
bool divides(int64_t width) {
  auto model = distributed_model(torch::nn::Linear(width, width));
  auto optimizer = distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
  model(torch::ones({2, width})).sum().backward();
  optimizer.set_lr(worker_index() == 0 ? 0.1 : 0.2);
  const std::string error = test::error_text<UsageError>([&] { optimizer.step(); });
  return error.find("an optimizer that is divided differs") != std::string::npos;
}

TEST(Fleet, StepsOfModelsOfAMebibyteAreDivided) {
  run_job(2, [](const std::string&) {
    EXPECT_TRUE(divides(512));
    EXPECT_FALSE(divides(500));
  });
}

TEST(Fleet, StepsAreNotDividedWhereTheStrategySaysSo) {
  run_job(2, [](const std::string&) { EXPECT_FALSE(divides(512)); }, {.divide_update = false});
}

TEST(Fleet, OptimizersOfRanksAreCompared) {
  const auto drift = [] {
    auto model = distributed_model(torch::nn::Linear(2, 1));
    auto optimizer = distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
    optimizer.set_lr(worker_index() == 0 ? 0.1 : 0.2);
    return test::error_text<UsageError>([&] { model(torch::ones({2, 2})).sum().backward(); });
  };
  run_job(2, [&](const std::string&) {
    EXPECT_THAT(drift(), HasSubstr("rank 1: learning rate of group 0 0.2, rank 0: 0.1"));
  });
  run_job(2,
          [&](const std::string&) { EXPECT_EQ(drift(), "nothing was thrown"); },
          {.check_drift = false});
}

TEST(Fleet, WhatToDoAboutNonfiniteGradientsIsThreeWords) {
  EXPECT_THAT(
      test::error_text<ConfigError>([] { DistributedStrategy{.on_nonfinite = "halt"}.validate(); }),
      HasSubstr(R"(on_nonfinite: expected "warn", "stop" or "ignore", got "halt")"));
  run_job(
      2,
      [](const std::string&) {
        auto model = distributed_model(torch::nn::Linear(2, 1));
        EXPECT_THAT(
            test::error_text<DataError>([&] {
              model(torch::full({2, 2}, std::numeric_limits<float>::infinity())).sum().backward();
            }),
            HasSubstr("update 1: the gradient of"));
      },
      {.on_nonfinite = "stop"});
}

TEST(Fleet, SaveReturnsWhenTheFileIsThereAndFailsOnEveryRank) {
  run_job(2, [](const std::string& folder) {
    auto model = distributed_model(torch::nn::Linear(2, 1));
    model.module()->eval();
    EXPECT_FALSE(model.module()->is_training());
    save(model, folder + "/weights.pt");
    EXPECT_TRUE(std::filesystem::exists(folder + "/weights.pt"));
    torch::nn::Linear back(2, 1);
    checkpoint::load_weights(back, folder + "/weights.pt");
    EXPECT_TRUE(torch::equal(back->weight, model.module()->weight));
    EXPECT_THAT(
        test::error_text<Error>([&] { save(model, folder + "/no/such/folder/weights.pt"); }),
        HasSubstr("no/such/folder/weights.pt"));
  });
}

TEST(Fleet, ProgressPassesEveryBatchThrough) {
  run_job(1, [](const std::string&) {
    std::vector<std::tuple<at::Tensor, at::Tensor>> batches(3,
                                                            {torch::ones({4}), torch::ones({4})});
    auto shown = progress(batches, {.total = 12, .style = events::ProgressStyle::kOff});
    int64_t seen = 0;
    for (auto& [inputs, labels] : shown) {
      seen += inputs.size(0);
    }
    shown.finish();
    EXPECT_EQ(seen, 12);
  });
}

/// Three batches, and what a loader says of the wait for them.
struct WaitedFor {
  struct Stats {
    double share;
    [[nodiscard]] double input_bound() const { return share; }
  };
  std::vector<std::tuple<at::Tensor>> batches =
      std::vector<std::tuple<at::Tensor>>(3, {torch::ones({4})});
  double share = 0;
  auto begin() { return batches.begin(); }
  auto end() { return batches.end(); }
  [[nodiscard]] Stats stats() const { return {share}; }
};

std::string drawn_of(WaitedFor loader, int64_t total = 12) {
  std::FILE* file = std::tmpfile();
  auto shown =
      progress(loader, {.total = total, .style = events::ProgressStyle::kLines, .out = file});
  for ([[maybe_unused]] auto& batch : shown) {
  }
  shown.finish();
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

TEST(Fleet, TheLastLineSaysHowLongTheLoaderWasWaitedFor) {
  run_job(1, [](const std::string&) {
    EXPECT_THAT(drawn_of({.share = 0.124}), HasSubstr("100%  input-bound 12 %"));
    EXPECT_THAT(drawn_of({.share = 0}), HasSubstr("input-bound 0 %"));
  });
}

// Rank 0 takes 12 samples, as 3 of 8 virtual ranks do, or as the only one.
TEST(Fleet, ProgressIsThatOfAllVirtualRanks) {
  for (const auto& [virtual_ranks, processes, total] :
       {std::tuple(8, 3, 32), {1, 2, 12}, {3, 2, 18}}) {
    run_job(processes,
            [total = total](const std::string&) {
              if (is_first_worker()) {
                EXPECT_THAT(drawn_of({}, total), ::testing::StartsWith("100%"));
              }
            },
            {.virtual_ranks = virtual_ranks});
  }
}

}  // namespace
}  // namespace argosy::fleet
