// Levels of group_sharded_parallel(), and state in files.
#include "argosy/parallel/sharded/group_sharded.h"

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using testing::Blocks;
using testing::error_of;
using testing::expect_same_bits;
using ::testing::HasSubstr;
using testing::OptimizerCase;
using testing::optimizers;
using testing::Pair;
using testing::small_units;
using testing::try_ranks_over;
using testing::values;

optim::Optimizer clipped(const auto& model) {
  return optim::AdamW(model, {.lr = 0.03, .grad_clip = optim::ClipGradByGlobalNorm(0.1)});
}

TEST(GroupSharded, AllLevelsHaveTheBits) {
  for (const char* const named : {"os", "os_g", "p_g_os"}) {
    const std::string level = named;
    for (const char* const backend : {"gloo", "shm", "hierarchical"}) {
      const auto outcomes = try_ranks_over(backend, [&](const comm::Group& group) {
        Blocks net;
        auto [model, optimizer, scaler] = group_sharded_parallel(
            net, clipped(net), level, group, {.scaler = optim::GradScaler({.init_scale = 8})});
        DistributedDataParallel plain(Blocks(), group, {.shared_memory = false});
        optim::Optimizer same = clipped(plain);
        optim::GradScaler plain_scaler({.init_scale = 8});
        for (int step = 0; step < 4; ++step) {
          const at::Tensor x = values({4, 3}, group.rank() + 10.0 * step, at::kFloat);
          // One update is skipped.
          const double factor = step == 2 && group.rank() == 1 ? 1e38 : 1.0;
          scaler->scale(model(x).square().mean() * factor * factor).backward();
          plain_scaler.scale(plain(x).square().mean() * factor * factor).backward();
          if (level == "os" && std::string(backend) == "gloo") {
            ASSERT_TRUE(optimizer.impl()->sharded() != nullptr);
            for (size_t i = 0; i < plain.parameters().size(); ++i) {
              ASSERT_NE(model.parameters()[i].grad().storage().data(), nullptr) << "whole, here";
              expect_same_bits(
                  model.parameters()[i].grad(), plain.parameters()[i].grad(), "gradient");
            }
          }
          EXPECT_EQ(scaler->step(optimizer), plain_scaler.step(same));
          scaler->update();
          plain_scaler.update();
          optimizer.zero_grad({.set_to_none = step % 2 == 0});
          same.zero_grad({.set_to_none = step % 2 == 0});
        }
        for (size_t i = 0; i < plain.parameters().size(); ++i) {
          expect_same_bits(model.parameters()[i], plain.parameters()[i], level);
        }
        expect_same_bits(optimizer.state_dict(), same.state_dict(), level);
      });
      for (const test::RankOutcome& outcome : outcomes) {
        EXPECT_EQ(outcome.error, "") << level << " over " << backend;
      }
    }
  }
}

TEST(GroupSharded, StageOneKeepsAPartOfTheState) {
  const auto outcomes = try_ranks_over("gloo", [&](const comm::Group& group) {
    Blocks net;
    auto sharded = group_sharded_parallel(net, optim::Adam(net, {.lr = 0.1}), "os", group);
    const optim::ShardedStep* const step = sharded.optimizer.impl()->sharded();
    ASSERT_NE(step, nullptr);
    int64_t kept = 0, all = 0;
    for (const at::Tensor& parameter : sharded.model.parameters()) {
      kept += step->values_of(parameter, false).numel();
      all += parameter.numel();
    }
    EXPECT_LT(kept, all * 2 / 3);
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

/// A model whose ranks divide state only, beside one of which each has all.
struct StageOne {
  StageOne(const comm::Group& ranks, bool divides)
      : model(Blocks(), ranks, {.shared_memory = false}), optimizer(clipped(model)) {
    EXPECT_EQ(model.divide_step(optimizer, {.divide_state = divides}), divides);
  }
  DistributedDataParallel<Blocks> model;
  optim::Optimizer optimizer;
};

TEST(GroupSharded, StageOneTakesGradientsInAnyOrderOfMemory) {
  testing::on_ranks(2, [&](comm::Group& group) {
    StageOne divided(group, true), plain(group, false);
    for (StageOne* const each : {&divided, &plain}) {
      each->model(values({4, 3}, group.rank(), at::kFloat)).square().mean().backward();
      for (at::Tensor& parameter : each->model.parameters()) {
        if (parameter.dim() == 2) {
          parameter.mutable_grad() = parameter.grad().t().contiguous().t();
        }
      }
      each->optimizer.step();
    }
    for (size_t i = 0; i < plain.model.parameters().size(); ++i) {
      expect_same_bits(divided.model.parameters()[i], plain.model.parameters()[i], "transposed");
    }
  });
}

TEST(GroupSharded, StageOneUnscalesWholeGradients) {
  testing::on_ranks(2, [&](comm::Group& group) {
    StageOne divided(group, true), plain(group, false);
    for (StageOne* const each : {&divided, &plain}) {
      optim::GradScaler scaler({.init_scale = 8});
      const at::Tensor x = values({4, 3}, group.rank(), at::kFloat);
      scaler.scale(each->model(x).square().mean()).backward();
      scaler.unscale_(each->optimizer);
    }
    for (size_t i = 0; i < plain.model.parameters().size(); ++i) {
      expect_same_bits(
          divided.model.parameters()[i].grad(), plain.model.parameters()[i].grad(), "unscaled");
    }
  });
}

TEST(GroupSharded, RanksMustDivideTheSame) {
  testing::on_ranks(2, [&](comm::Group& group) {
    DistributedDataParallel model(Blocks(), group, {.shared_memory = false});
    const optim::Optimizer optimizer = clipped(model);
    EXPECT_THAT(
        error_of([&] { (void)model.divide_step(optimizer, {.divide_state = group.rank() == 0}); }),
        HasSubstr("divide_state"));
  });
}

TEST(GroupSharded, NamesAnotherLevel) {
  testing::on_ranks(1, [](comm::Group& group) {
    const auto error = [&](const std::string& level, const GroupShardedOptions& options) {
      Blocks net;
      return error_of([&] {
        (void)group_sharded_parallel(net, optim::SGD(net, {.lr = 0.1}), level, group, options);
      });
    };
    EXPECT_THAT(error("stage3", {}),
                HasSubstr(R"(expected "os", "os_g" or "p_g_os", got "stage3")"));
    EXPECT_THAT(error("os", {.offload = Offload{"/tmp"}}), HasSubstr("offload is for the level"));
  });
}

/// Bytes of this process's mappings that are nameless files of a folder.
int64_t bytes_in_files_of(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" " + folder + "/") != std::string::npos &&
        line.find("(deleted)") != std::string::npos) {
      const size_t dash = line.find('-');
      bytes += static_cast<int64_t>(std::stoull(line.substr(dash + 1), nullptr, 16) -
                                    std::stoull(line.substr(0, dash), nullptr, 16));
    }
  }
  return bytes;
}

TEST(Offload, HasTheBitsAndLiesInFiles) {
  const test::TempDir folder;
  for (const OptimizerCase& recipe : {optimizers()[0], optimizers()[3], optimizers()[6]}) {
    testing::on_ranks(3, [&](comm::Group& group) {
      ShardOptions options = small_units();
      options.offload = Offload{folder.path().string()};
      Pair pair(group, recipe, options);
      for (int step = 0; step < 3; ++step) {
        pair.backward(group, step);
        pair.update();
      }
      const optim::OptimizerState state = pair.optimizer.state_dict();
      expect_same_bits(state, pair.plain_optimizer.state_dict(), recipe.name);
      pair.optimizer.load_state_dict(state.clone());
      for (int step = 3; step < 5; ++step) {
        pair.backward(group, step);
        pair.update();
      }
      pair.compare(recipe.name);
      EXPECT_EQ(bytes_in_files_of(folder.path().string()) > 0, recipe.name != "SGD");
    });
  }
}

TEST(Offload, AStateThatIsLoadedLiesInFilesToo) {
  const test::TempDir folder;
  testing::on_ranks(2, [&](comm::Group& group) {
    ShardOptions options = small_units();
    options.offload = Offload{folder.path().string()};
    Pair pair(group, optimizers()[2], options);
    pair.backward(group, 0);
    pair.plain_optimizer.step();
    EXPECT_EQ(bytes_in_files_of(folder.path().string()), 0);
    comm::barrier(group);
    pair.optimizer.load_state_dict(pair.plain_optimizer.state_dict());
    comm::barrier(group);
    EXPECT_GT(bytes_in_files_of(folder.path().string()), 0);
    comm::barrier(group);
  });
}

TEST(Offload, TakesMastersToo) {
  const test::TempDir folder;
  testing::on_ranks(2, [&](comm::Group& group) {
    std::vector<optim::OptimizerState> states;
    for (const bool offloads : {false, true}) {
      ShardOptions options = small_units();
      options.mixed_precision = MixedPrecision{};
      if (offloads) {
        options.offload = Offload{folder.path().string()};
      }
      torch::nn::Linear net(400, 30);
      testing::fill(*net, 3);
      auto model = fully_shard(net, group, {.shard = options});
      if (offloads) {
        EXPECT_GT(bytes_in_files_of(folder.path().string()), 0) << "the masters";
      }
      optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.1});
      (void)model.divide_step(optimizer);
      for (int step = 0; step < 3; ++step) {
        model(values({4, 400}, group.rank() + 10.0 * step, at::kFloat))
            .to(at::kFloat)
            .square()
            .mean()
            .backward();
        optimizer.step();
        optimizer.zero_grad();
      }
      states.push_back(optimizer.state_dict());
    }
    expect_same_bits(states[1], states[0], "masters and states");
  });
}

TEST(Offload, NamesAFolderThatIsNotThere) {
  testing::on_ranks(2, [&](comm::Group& group) {
    ShardOptions options = small_units();
    options.offload = Offload{"/nowhere/at/all"};
    EXPECT_THAT(test::error_text<ConfigError>(
                    [&] { (void)fully_shard(Blocks(), group, {.shard = options}); }),
                HasSubstr("cannot make a file of 1 bytes in the folder \"/nowhere/at/all\""));
    options.offload = Offload{};
    EXPECT_THAT(error_of([&] { (void)fully_shard(Blocks(), group, {.shard = options}); }),
                HasSubstr("offload: the folder is missing"));
  });
}

}  // namespace
}  // namespace argosy::parallel
