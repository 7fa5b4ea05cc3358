#include "argosy/parallel/sharded/fully_shard.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/hooks.h"
#include "argosy/engine/parts.h"
#include "argosy/engine/state_dict.h"
#include "argosy/parallel/mesh.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"
#include "argosy/parallel/sharded/memory_pool.h"
#include "argosy/parallel/sharded/unit_plan.h"

#include "tests/support/error_text.h"
#include "tests/support/shared_counter.h"

namespace argosy::parallel {
namespace {

using testing::Blocks;
using testing::expect_same_bits;
using testing::on_ranks;
using testing::OptimizerCase;
using testing::optimizers;
using testing::Pair;
using testing::small_units;
using testing::values;
using Wrapper = testing::ShardedBlocks;

TEST(FullyShard, HasTheBitsOfRanksThatHaveEverything) {
  for (const int size : {2, 3, 4}) {
    for (const OptimizerCase& recipe : optimizers()) {
      on_ranks(size, [&](comm::Group& group) {
        Pair pair(group, recipe);
        for (int step = 0; step < 5; ++step) {
          pair.backward(group, step);
          pair.update();
        }
        pair.compare(recipe.name);
        expect_same_bits(
            pair.optimizer.state_dict(), pair.plain_optimizer.state_dict(), recipe.name);
      });
    }
  }
}

TEST(FullyShard, AFewRanksCanDivideWhatOthersDivideToo) {
  for (const auto& [size, degree] : {std::pair(4, 2), {6, 2}, {6, 3}, {4, 1}}) {
    for (const OptimizerCase& recipe : {optimizers()[3], optimizers()[6]}) {
      on_ranks(size, [&, size = size, degree = degree](comm::Group& group) {
        ShardOptions options = small_units();
        options.degree = degree;
        Pair pair(group, recipe, options);
        for (int step = 0; step < 4; ++step) {
          pair.backward(group, step);
          if (step == 1) {
            pair.compare_gradients("averages");
          }
          pair.update();
        }
        pair.compare(recipe.name);
        expect_same_bits(
            pair.optimizer.state_dict(), pair.plain_optimizer.state_dict(), recipe.name);
        const at::Tensor weight = pair.sharded.module()->blocks[0]->named_parameters()["1.weight"];
        const int64_t kept = sharded::ShardedMemory::of(weight)->part().numel();
        const int64_t updated = pair.optimizer.impl()->sharded()->values_of(weight, false).numel();
        EXPECT_GE(kept * degree, weight.numel());
        EXPECT_LE(updated * size, kept * degree);
      });
    }
  }
}

/// The ranks along an axis that is not the last one are no neighbours.
TEST(FullyShard, FollowsAMesh) {
  on_ranks(6, [&](comm::Group& group) {
    const Mesh mesh(group, {{"sharding", 2}, {"dp", 3}});
    auto sharded = fully_shard(Blocks(), mesh, {.shared_memory = false, .shard = small_units()});
    DistributedDataParallel plain(Blocks(), group, {.shared_memory = false});
    optim::Optimizer a = optim::AdamW(sharded, {.lr = 0.03});
    optim::Optimizer b = optim::AdamW(plain, {.lr = 0.03});
    ASSERT_TRUE(sharded.divide_step(a));
    for (int step = 0; step < 3; ++step) {
      const at::Tensor x = values({4, 3}, group.rank() + 10.0 * step, at::kFloat);
      for (Wrapper* const model : {&sharded, &plain}) {
        (*model)(x).square().mean().backward();
      }
      for (optim::Optimizer* const each : {&a, &b}) {
        each->step();
        each->zero_grad();
      }
    }
    const at::Tensor weight = sharded.module()->in->weight;
    const int64_t mine = sharded::ShardedMemory::of(weight)->part_of(weight).numel();
    const auto of_all = comm::all_gather(at::full({1}, mine, at::kLong), group);
    for (int other = 0; other < group.size(); ++other) {
      const bool alike = mesh.coordinate("sharding", other) == mesh.coordinate("sharding");
      EXPECT_EQ(of_all[static_cast<size_t>(other)].item<int64_t>() == mine, alike)
          << group.rank() << " and " << other;
    }
    for (size_t i = 0; i < plain.parameters().size(); ++i) {
      expect_same_bits(sharded.parameters()[i], plain.parameters()[i], std::to_string(i));
    }
  });
}

TEST(FullyShard, GradientsAreGatheredForWhoReadsThem) {
  on_ranks(2, [&](comm::Group& group) {
    Pair pair(group, optimizers()[0]);
    pair.compare("at first");
    pair.backward(group, 0);
    pair.compare_gradients("after backward");
    pair.update();
    pair.compare("after a step");
  });
}

TEST(FullyShard, ARankKeepsItsPartBetweenSteps) {
  on_ranks(4, [&](comm::Group& group) {
    Pair pair(group, optimizers()[2], small_units(), /*share=*/false);
    pair.backward(group, 0);
    pair.update();
    int64_t kept = 0, whole = 0;
    for (const at::Tensor& parameter : pair.sharded.parameters()) {
      EXPECT_EQ(parameter.storage().data(), nullptr);
      kept += sharded::ShardedMemory::of(parameter)->part_of(parameter).numel();
      whole += parameter.numel();
    }
    EXPECT_LT(kept, whole / 2);
    const auto all = comm::all_gather(at::full({1}, kept, at::kLong), group);
    int64_t together = 0;
    for (const at::Tensor& each : all) {
      together += each.item<int64_t>();
    }
    EXPECT_EQ(together, whole);
  });
}

/// Where ranks share memory, one of them reads while the others do something else, or nothing.
TEST(FullyShard, OnOneHostARankReadsAlone) {
  const auto outcomes = testing::try_ranks_over("shm", [&](const comm::Group& group) {
    Pair pair(group, optimizers()[2]);
    for (int step = 0; step < 3; ++step) {
      pair.backward(group, step);
      pair.update();
      if (group.rank() == step % 2) {
        const torch::NoGradGuard no_grad;
        const at::Tensor x = values({4, 3}, 100.0 + step, at::kFloat);
        expect_same_bits(pair.sharded(x), pair.plain.module()->forward(x), "an evaluation");
      }
    }
    pair.compare("in the end");
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

/// A slower rank reads what the others will change, and they wait for what it writes.
TEST(FullyShard, OnOneHostRanksWaitForEachOthersPart) {
  const auto outcomes = testing::try_ranks_over("shm", [&](const comm::Group& group) {
    const auto pool = std::make_shared<sharded::MemoryPool>(
        group, sharded::PoolOptions{.timeout = std::chrono::seconds(5), .share = true});
    const at::Tensor flat = pool->make(8, at::kFloat);
    const auto memory = sharded::ShardedMemory::of(flat);
    const auto be_slow = [&] {
      if (group.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    };
    for (int step = 1; step < 4; ++step) {
      be_slow();
      EXPECT_EQ(flat.sum().item<float>(), 8.0F * static_cast<float>(step - 1));
      pool->begin_writes();
      be_slow();
      memory->part_to_write(flat).fill_(step);
      pool->end_writes();
      EXPECT_EQ(flat.sum().item<float>(), 8.0F * static_cast<float>(step));
    }
    memory->part_to_write(flat).fill_(group.rank());
    EXPECT_EQ(flat.sum().item<float>(), 4.0F) << "who reads makes it readable";
    pool->begin_writes();
    be_slow();
    memory->part_to_write(flat).fill_(9);
    EXPECT_EQ(flat.sum().item<float>(), 72.0F) << "inside of a step, too";
    pool->end_writes();
    EXPECT_EQ(flat.sum().item<float>(), 72.0F);
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

TEST(FullyShard, ARankThatDoesNotComeToAStepIsNamedWithWhatItHoldsUp) {
  for (const bool leaves : {false, true}) {
    test::SharedCounter given_up;
    const auto outcomes = testing::try_ranks_over(
        "shm",
        [&](const comm::Group& group) {
          const auto pool = std::make_shared<sharded::MemoryPool>(
              group,
              sharded::PoolOptions{.timeout = std::chrono::milliseconds(500), .share = true});
          const at::Tensor flat = pool->make(8, at::kFloat);
          comm::barrier(group);
          if (group.rank() == 0) {
            EXPECT_THAT(test::error_text<CommError>([&] { pool->begin_writes(); }),
                        ::testing::AllOf(
                            ::testing::HasSubstr("until nobody reads the values that an update"),
                            ::testing::HasSubstr("rank 1")));
            given_up.add(1);
          }
          EXPECT_TRUE(leaves || given_up.wait_for(1));
        },
        std::chrono::seconds(20));
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.error, "");
    }
  }
}

TEST(FullyShard, AStepWaitsUntilNobodyHoldsTheValues) {
  on_ranks(2, [&](comm::Group& group) {
    for (const bool share : {true, false}) {
      Pair pair(group, optimizers()[0], small_units(), share);
      pair.backward(group, 0);
      {
        const WholeParameters whole = pair.sharded.whole_parameters();
        EXPECT_THAT(testing::error_of([&] { pair.optimizer.step(); }),
                    ::testing::HasSubstr("Let the guard go first"));
      }
      pair.update();
      pair.compare("after it");
    }
  });
}

/// What operators write is a rank's own until it is taken over.
TEST(FullyShard, WhatAllWriteIsKeptOnce) {
  on_ranks(3, [&](comm::Group& group) {
    Pair pair(group, optimizers()[0]);
    for (int step = 0; step < 3; ++step) {
      for (testing::ShardedBlocks* const model : {&pair.sharded, &pair.plain}) {
        const torch::NoGradGuard no_grad;
        for (const at::Tensor& parameter : model->parameters()) {
          parameter.mul_(1.5);
          parameter.add_(parameter.mean());
        }
      }
      pair.compare("written");
      pair.backward(group, step);
      pair.update();
      pair.compare("after a step");
    }
  });
}

/// An operator that writes one unit and reads the next, which were both written before.
TEST(FullyShard, AnOperatorMayUseSeveralUnits) {
  on_ranks(2, [&](comm::Group& group) {
    Pair pair(group, optimizers()[0]);
    for (testing::ShardedBlocks* const model : {&pair.sharded, &pair.plain}) {
      const torch::NoGradGuard no_grad;
      const auto weight = [&](size_t block) {
        return model->module()->blocks[block]->named_parameters()["1.weight"];
      };
      for (const int round : {0, 1}) {
        for (size_t i = 0; i < 4; ++i) {
          weight(i).copy_(weight((i + 1 + static_cast<size_t>(round)) % 4)).mul_(1.25);
        }
      }
    }
    pair.backward(group, 0);
    pair.update();
    pair.compare("after a step");
  });
}

/// More than stay whole beside the one that is used.
TEST(FullyShard, AnOperatorMayUseManyUnits) {
  on_ranks(2, [&](comm::Group& group) {
    for (const bool share : {true, false}) {
      Pair pair(group, optimizers()[0], small_units(), share);
      std::vector<at::Tensor> sums;
      for (testing::ShardedBlocks* const model : {&pair.sharded, &pair.plain}) {
        const torch::NoGradGuard no_grad;
        std::vector<at::Tensor> weights;
        for (const auto& block : *model->module()->blocks) {
          weights.push_back(block->named_parameters()["1.weight"]);
        }
        at::_foreach_mul_(weights, 1.5);
        sums.push_back(at::stack(weights).sum());
      }
      expect_same_bits(sums[0], sums[1], "an operator that reads all");
      pair.backward(group, 0);
      pair.update();
      pair.compare("after a step");
    }
  });
}

/// Layers that start as copies of others.
TEST(FullyShard, WeightsComeFromOtherUnitsOfTheModel) {
  on_ranks(2, [&](comm::Group& group) {
    Pair pair(group, optimizers()[0]);
    for (testing::ShardedBlocks* const model : {&pair.sharded, &pair.plain}) {
      const auto own = model->module()->named_parameters();
      for (const auto& [to, from] : {std::pair("blocks.1.1.weight", "blocks.0.1.weight"),
                                     {"blocks.2.1.weight", "blocks.1.1.weight"},
                                     {"blocks.3.3.weight", "blocks.2.3.weight"}}) {
        engine::copy_values(own[to], own[from]);
      }
    }
    pair.compare("copied");
    pair.backward(group, 0);
    pair.update();
    pair.compare("after a step");
  });
}

TEST(FullyShard, TakesUnitsFromTheModel) {
  const Blocks model;
  const ddp::ParameterTable table(*model);
  const auto units_of = [&](const ShardOptions& options) {
    std::vector<std::string> units;
    for (const std::vector<size_t>& unit : sharded::plan_units(*model, table, options)) {
      units.push_back(table.name(unit.back()) + " to " + table.name(unit.front()));
    }
    return units;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(units_of({.unit_bytes = 0}),
              ElementsAre("out.weight to out.bias",
                          "blocks.3.0.weight to blocks.3.3.bias",
                          "blocks.2.0.weight to blocks.2.3.bias",
                          "blocks.1.0.weight to blocks.1.3.bias",
                          "blocks.0.0.weight to blocks.0.3.bias",
                          "in.weight to in.bias"));
  EXPECT_THAT(units_of({}), ElementsAre("in.weight to out.bias")) << "all are small";
  EXPECT_THAT(units_of({.units = {"blocks"}, .unit_bytes = 0}),
              ElementsAre("blocks.0.0.weight to blocks.3.3.bias", "in.weight to out.bias"));
  EXPECT_EQ(testing::error_of([&] {
              (void)units_of({.units = {"layers.*"}});
            }).find("[parallel.fully_shard] units: the model has no module \"layers.*\""),
            0U);
}

TEST(FullyShard, GathersTheNextUnitAheadAndKeepsFew) {
  on_ranks(2, [&](comm::Group& group) {
    for (const bool reshard : {true, false}) {
      ShardOptions options = small_units();
      options.reshard_after_forward = reshard;
      Pair pair(group, optimizers()[2], options, /*share=*/false);
      const auto whole = [&] {
        int units = 0;
        const std::vector<at::Tensor> parameters = pair.sharded.parameters();
        for (const size_t first : {0, 2, 8, 14, 20, 26}) {  // of each unit
          units += sharded::ShardedMemory::of(parameters[first])->is_whole() ? 1 : 0;
        }
        return units;
      };
      for (int step = 0; step < 3; ++step) {
        pair.backward(group, step);
        EXPECT_THAT(whole(),
                    reshard ? ::testing::Matcher<int>(::testing::Le(3)) : ::testing::Eq(6));
        pair.update();
        EXPECT_EQ(whole(), 0);
      }
      pair.compare("in the end");
    }
  });
}

/// Operations that this rank has begun.
class Begun final : public comm::Hook {
 public:
  void on_enqueued(const comm::OperationEvent& event) override {
    gathers += event.op == "all_gather" ? 1 : 0;
    reductions += event.op == "reduce_scatter" ? 1 : 0;
  }
  std::atomic<int> gathers = 0, reductions = 0;
};

/// Says when a layer has been computed, forward and backward.
struct WatchedImpl : torch::nn::Module {
  WatchedImpl() {
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < kLayers; ++i) {
      layers->push_back(torch::nn::Linear(16, 16));
    }
    testing::fill(*this, 1);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (int i = 0; i < kLayers; ++i) {
      x = layers[static_cast<size_t>(i)]->as<torch::nn::Linear>()->forward(x).tanh();
      computed(i);
      x.register_hook([this, i](const at::Tensor&) { arrived(i); });
    }
    return x;
  }
  static constexpr int kLayers = 5;
  torch::nn::ModuleList layers{nullptr};
  std::function<void(int layer)> computed = [](int) {};
  std::function<void(int layer)> arrived = [](int) {};  // the gradient of its result is there
};
TORCH_MODULE(Watched);

TEST(FullyShard, GathersAndReducesWhileItComputes) {
  on_ranks(2, [&](comm::Group& group) {
    constexpr int kLast = WatchedImpl::kLayers - 1;
    const auto begun = std::make_shared<Begun>();
    add_hook(group, begun);
    Watched net;
    auto model = fully_shard(net, group, {.shared_memory = false, .shard = small_units()});
    optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.1});
    ASSERT_TRUE(model.divide_step(optimizer));
    for (int step = 0; step < 3; ++step) {
      std::vector<int> forward(kLast + 1), backward(kLast + 1), reduced(kLast + 1);
      begun->gathers = begun->reductions = 0;
      net->computed = [&](int layer) { forward[static_cast<size_t>(layer)] = begun->gathers; };
      net->arrived = [&](int layer) {
        backward[static_cast<size_t>(layer)] = begun->gathers;
        reduced[static_cast<size_t>(layer)] = begun->reductions;
      };
      model(values({4, 16}, step, at::kFloat)).square().mean().backward();
      optimizer.step();
      optimizer.zero_grad();
      if (step == 0) {
        continue;  // the order of the units is known after the first step
      }
      for (int layer = 0; layer < kLast; ++layer) {
        EXPECT_EQ(forward[static_cast<size_t>(layer)], layer + 2) << "the next one beside it";
      }
      EXPECT_GT(backward[1], backward[kLast]) << "what went in forward comes again";
      EXPECT_EQ(backward[1], begun->gathers) << "the first layer's before its backward";
      EXPECT_GT(reduced[1], 0) << "the last layers' before the first one's gradient is there";
      EXPECT_LT(reduced[1], begun->reductions);
    }
    remove_hook(group, begun);
  });
}

/// Bytes that a rank must send, whatever the algorithm: for a sum of all, what it gives away and
/// what it hands out.
class SentBytes final : public comm::Hook {
 public:
  explicit SentBytes(int ranks) : ranks_(ranks) {}
  void on_enqueued(const comm::OperationEvent& event) override {
    const int64_t others = ranks_ - 1;
    if (event.op == "all_reduce") {
      bytes_ += 2 * others * event.bytes / ranks_;
    } else if (event.op == "all_gather" || event.op == "reduce_scatter") {
      bytes_ += others * event.bytes;  // of a part
    }
  }
  int64_t take() { return std::exchange(bytes_, 0); }

 private:
  const int64_t ranks_;
  int64_t bytes_ = 0;
};

TEST(FullyShard, ARankSendsAtMostHalfMoreThanDataParallelism) {
  on_ranks(3, [&](comm::Group& group) {
    const auto sent = std::make_shared<SentBytes>(group.size());
    add_hook(group, sent);
    const auto step_bytes = [&](bool divides, bool share) {
      DdpOptions options{.shared_memory = share};
      if (divides) {
        options.shard = small_units();
      }
      Wrapper model(Blocks(256, 6), group, options);  // large beside what rounds units up
      optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.01});
      (void)model.divide_step(optimizer);
      for (int step = 0; step < 3; ++step) {  // the order of the units is known after the first
        (void)sent->take();
        model(values({4, 3}, step, at::kFloat)).square().mean().backward();
        optimizer.step();
        optimizer.zero_grad();
      }
      return static_cast<double>(sent->take());
    };
    const double plain = step_bytes(/*divides=*/false, /*share=*/false);
    const double gathered = step_bytes(/*divides=*/true, /*share=*/false);
    EXPECT_GT(gathered, 1.2 * plain);
    EXPECT_LE(gathered, 1.5 * plain);
    if (comm::share_memory(64, group) != nullptr) {
      EXPECT_LE(step_bytes(/*divides=*/true, /*share=*/true), 0.52 * plain) << "gradients only";
    }
    remove_hook(group, sent);
  });
}

TEST(FullyShard, AddsUpGradientsAsEverybodyDoes) {
  on_ranks(3, [&](comm::Group& group) {
    for (const bool locally : {true, false}) {
      Pair pair(group, optimizers()[3]);
      for (int step = 0; step < 3; ++step) {
        for (int micro = 0; micro < 3; ++micro) {
          std::vector<NoSync> guards;
          if (locally && micro < 2) {
            guards.push_back(pair.sharded.no_sync());
            guards.push_back(pair.plain.no_sync());
          }
          pair.backward(group, 10 * step + micro);
        }
        pair.compare_gradients(locally ? "local" : "reduced");
        pair.update();
      }
      pair.compare(locally ? "local" : "reduced");
    }
  });
}

TEST(FullyShard, WhoStopsHalfwayAndGoesOnLocallyLosesNothing) {
  on_ranks(2, [&](comm::Group& group) {
    Pair pair(group, optimizers()[0]);
    pair.backward(group, 0);  // averaged
    {
      const NoSync a = pair.sharded.no_sync();
      const NoSync b = pair.plain.no_sync();
      pair.backward(group, 1);
      pair.backward(group, 2);
    }
    pair.compare_gradients("added to the averages");
    pair.backward(group, 3);
    pair.compare_gradients("averaged again");
    pair.update();
    pair.compare("updated");
  });
}

TEST(FullyShard, ZerosAreZerosInAllWays) {
  on_ranks(2, [&](comm::Group& group) {
    for (int way = 0; way < 3; ++way) {
      Pair pair(group, optimizers()[0]);
      for (int step = 0; step < 3; ++step) {
        pair.backward(group, step);
        pair.optimizer.step();
        pair.plain_optimizer.step();
        if (way == 0) {
          pair.optimizer.zero_grad({.set_to_none = false});
          pair.plain_optimizer.zero_grad({.set_to_none = false});
        } else {
          pair.sharded.module()->zero_grad(way == 1);
          pair.plain.module()->zero_grad(way == 1);
        }
        pair.compare_gradients("zeros");
      }
      pair.compare("way " + std::to_string(way));
    }
  });
}

TEST(FullyShard, WhatAllWriteAlikeIsKept) {
  on_ranks(3, [&](comm::Group& group) {
    Pair pair(group, optimizers()[2]);
    for (int step = 0; step < 3; ++step) {
      pair.backward(group, step);
      for (Wrapper* const model : {&pair.sharded, &pair.plain}) {
        torch::nn::utils::clip_grad_norm_(model->parameters(), 0.01);
        (void)optim::clip_grad_norm_(*model, 0.005);
        optim::clip_grad_value_(*model, 0.001);
      }
      pair.compare_gradients("clipped");
      pair.update();
      const torch::NoGradGuard no_grad;
      for (Wrapper* const model : {&pair.sharded, &pair.plain}) {
        for (at::Tensor& parameter : model->parameters()) {
          parameter.mul_(0.9);
        }
      }
      pair.compare("shrunk");
    }
    const WholeParameters whole = pair.sharded.whole_parameters();
    for (const at::Tensor& parameter : pair.sharded.parameters()) {
      EXPECT_NE(parameter.storage().data(), nullptr);
    }
    EXPECT_THAT(testing::error_of([&] { pair.optimizer.step(); }),
                ::testing::HasSubstr("while whole_parameters() holds"));
  });
}

/// All ranks divide parameters, or those of each host.
TEST(FullyShard, HasTheBitsOverTwoHosts) {
  const auto outcomes = testing::try_ranks_over("hierarchical", [](const comm::Group& group) {
    for (const int degree : {0, 2}) {
      ShardOptions options = small_units();
      options.degree = degree;
      Pair pair(group, optimizers()[2], options);
      for (int step = 0; step < 4; ++step) {
        pair.backward(group, step);
        pair.update();
      }
      pair.compare("over two hosts, degree " + std::to_string(degree));
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

TEST(FullyShard, AutocastHasTheBitsToo) {
  on_ranks(2, [&](comm::Group& group) {
    DdpOptions options{.shared_memory = false, .autocast = at::kBFloat16};
    Wrapper plain(Blocks(), group, options);
    options.shard = small_units();
    Wrapper sharded = fully_shard(Blocks(), group, options);
    optim::Optimizer a = optim::AdamW(sharded, {.lr = 0.01});
    optim::Optimizer b = optim::AdamW(plain, {.lr = 0.01});
    (void)sharded.divide_step(a);
    for (int step = 0; step < 4; ++step) {
      for (Wrapper* const model : {&sharded, &plain}) {
        (*model)(values({4, 3}, group.rank() + 10.0 * step, at::kFloat)).square().mean().backward();
      }
      for (optim::Optimizer* const each : {&a, &b}) {
        each->step();
        each->zero_grad();
      }
    }
    for (size_t i = 0; i < plain.parameters().size(); ++i) {
      expect_same_bits(sharded.parameters()[i], plain.parameters()[i], std::to_string(i));
    }
  });
}

TEST(FullyShard, AStateGoesInAndOut) {
  on_ranks(3, [&](comm::Group& group) {
    Pair pair(group, optimizers()[3]);
    for (int step = 0; step < 2; ++step) {
      pair.backward(group, step);
      pair.update();
    }
    Pair other(group, optimizers()[3]);
    {
      const WholeParameters whole = other.sharded.whole_parameters();
      const torch::NoGradGuard no_grad;
      for (size_t i = 0; i < pair.plain.parameters().size(); ++i) {
        other.sharded.parameters()[i].copy_(pair.plain.parameters()[i]);
        other.plain.parameters()[i].copy_(pair.plain.parameters()[i]);
      }
    }
    other.optimizer.load_state_dict(pair.plain_optimizer.state_dict().clone());
    other.plain_optimizer.load_state_dict(pair.optimizer.state_dict().clone());
    for (int step = 2; step < 4; ++step) {
      other.backward(group, step);
      other.update();
    }
    other.compare("went on");
  });
}

/// What a rank has gathered is out of date then.
/// A state that an optimizer got before its step was divided goes along.
TEST(FullyShard, AStateThatWasLoadedBeforeIsDivided) {
  on_ranks(3, [&](comm::Group& group) {
    const OptimizerCase recipe = optimizers()[3];
    Pair pair(group, recipe);
    for (int step = 0; step < 2; ++step) {
      pair.backward(group, step);
      pair.update();
    }
    const optim::OptimizerState state = pair.plain_optimizer.state_dict();
    const engine::StateDict weights = engine::state_dict(*pair.plain.module());
    Blocks net;
    engine::load_state_dict(*net, weights);
    Wrapper sharded = fully_shard(net, group, {.shard = small_units()});
    optim::Optimizer optimizer = recipe.make(sharded);
    optimizer.load_state_dict(state);
    ASSERT_TRUE(sharded.divide_step(optimizer));
    for (int step = 2; step < 4; ++step) {
      pair.backward(group, step);
      sharded(values({4, 3}, group.rank() + 10.0 * step, at::kFloat)).square().mean().backward();
      pair.update();
      optimizer.step();
      optimizer.zero_grad();
    }
    for (size_t i = 0; i < pair.plain.parameters().size(); ++i) {
      expect_same_bits(sharded.parameters()[i], pair.plain.parameters()[i], std::to_string(i));
    }
    expect_same_bits(optimizer.state_dict(), pair.plain_optimizer.state_dict(), "its state");
  });
}

TEST(FullyShard, WeightsAreLoadedWhereUnitsAreWhole) {
  on_ranks(2, [&](comm::Group& group) {
    ShardOptions options = small_units();
    options.reshard_after_forward = false;
    auto model = fully_shard(Blocks(), group, {.shard = options});
    const at::Tensor x = values({4, 3}, 1, at::kFloat);
    const torch::NoGradGuard no_grad;
    (void)model(x);
    Blocks other;
    testing::fill(*other, 5);
    (void)engine::load_state_dict(model, engine::state_dict(*other));
    expect_same_bits(model(x), other->forward(x), "of the weights that were loaded");
  });
}

TEST(FullyShard, EachRankDrawsItsPart) {
  std::vector<std::vector<at::Tensor>> results;
  for (const int size : {1, 2, 3}) {
    std::vector<at::Tensor> result;
    on_ranks(size, [&](comm::Group& group) {
      ShardOptions options = small_units();
      int64_t drawn = 0;
      options.initialize =
          [&](const std::string& name, const at::Tensor& part, const IndexRange& range) {
            EXPECT_EQ(part.numel(), range.size());
            drawn += range.size();
            part.copy_((at::arange(range.begin, range.end, at::kDouble) * 0.3 +
                        static_cast<double>(name.size()))
                           .sin());
          };
      Blocks net;
      {
        const torch::NoGradGuard no_grad;
        for (at::Tensor& parameter : net->parameters()) {
          parameter.fill_(std::numeric_limits<float>::quiet_NaN());  // nobody reads it
        }
      }
      Wrapper model = fully_shard(net, group, {.shard = options});
      int64_t all = 0;
      for (const at::Tensor& parameter : model.parameters()) {
        all += parameter.numel();
      }
      EXPECT_LE(drawn, size == 1 ? all : all * 2 / 3);
      const WholeParameters whole = model.whole_parameters();
      if (group.rank() == 0) {
        for (const at::Tensor& parameter : model.parameters()) {
          result.push_back(parameter.detach().clone());
        }
      }
    });
    results.push_back(result);
  }
  for (const auto& result : results) {
    ASSERT_EQ(result.size(), results[0].size());
    for (size_t i = 0; i < result.size(); ++i) {
      expect_same_bits(result[i], results[0][i], std::to_string(i));
    }
  }
}

TEST(FullyShard, LivesAsLongAsItsModule) {
  on_ranks(2, [&](comm::Group& group) {
    Blocks net;
    at::Tensor before;
    {
      const Wrapper model = fully_shard(net, group, {.shard = small_units()});
      before = net->in->weight.detach().clone();
    }
    expect_same_bits(net->in->weight, before, "after the wrapper");
  });
}

/// Units that are used twice, with others between: their gradients come in two parts.
struct PairOfLayersImpl : torch::nn::Module {
  PairOfLayersImpl() {
    first = register_module("first", torch::nn::Linear(8, 8));
    second = register_module("second", torch::nn::Linear(8, 8));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(PairOfLayers);
struct HourglassImpl : torch::nn::Module {
  HourglassImpl() {
    for (PairOfLayers* const pair : {&outer, &middle, &inner}) {
      *pair = PairOfLayers();
    }
    register_module("outer", outer);
    register_module("middle", middle);
    register_module("inner", inner);
    testing::fill(*this, 1);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = outer->first(middle->first(x).tanh()).tanh();
    x = inner->second(inner->first(x)).tanh();
    return outer->second(middle->second(x).tanh());
  }
  PairOfLayers outer{nullptr}, middle{nullptr}, inner{nullptr};
};
TORCH_MODULE(Hourglass);

TEST(FullyShard, WhoReadsGradientsDoesNotSpoilTheNextOnes) {
  on_ranks(2, [&](comm::Group& group) {
    auto sharded = fully_shard(Hourglass(), group, {.shard = small_units()});
    DistributedDataParallel plain(Hourglass(), group, {.shared_memory = false});
    for (int step = 0; step < 4; ++step) {
      const at::Tensor x = values({4, 8}, group.rank() + 10.0 * step, at::kFloat);
      sharded(x).square().mean().backward();
      plain(x).square().mean().backward();
      for (size_t i = 0; i < plain.parameters().size(); ++i) {
        expect_same_bits(sharded.parameters()[i].grad(),
                         plain.parameters()[i].grad(),
                         std::to_string(i) + " of " + std::to_string(step));
      }
      sharded.module()->zero_grad();
      plain.module()->zero_grad();
    }
  });
}

TEST(FullyShard, GradientsThatNoOutputAnnouncesAreAddedTo) {
  on_ranks(2, [&](comm::Group& group) {
    Pair pair(group, optimizers()[0]);
    pair.backward(group, 0);
    for (Wrapper* const model : {&pair.sharded, &pair.plain}) {
      const NoSync local = model->no_sync();  // the wrapper sees nothing of this forward
      model->module()->forward(values({4, 3}, group.rank() + 3.0, at::kFloat)).sum().backward();
    }
    pair.backward(group, 1);
    pair.compare_gradients("averaged with what was there");
  });
}

TEST(FullyShard, RanksMayEvaluateDifferentlyWhileAllIsWhole) {
  for (const auto& [first, second, share] :
       {std::tuple(3, 1, true), {3, 0, true}, {1, 0, true}, {3, 1, false}}) {
    const auto outcomes = testing::try_ranks_over(
        "shm", [&, first = first, second = second, share = share](const auto& group) {
          Pair pair(group, optimizers()[0], small_units(), share);
          {
            const WholeParameters whole = pair.sharded.whole_parameters();
            const WholeParameters nested = pair.sharded.whole_parameters();
            const torch::NoGradGuard no_grad;
            for (int i = 0; i < (group.rank() == 0 ? first : second); ++i) {
              (void)pair.sharded.forward_alone(values({4, 3}, i, at::kFloat));
            }
          }
          for (int step = 0; step < 3; ++step) {
            pair.backward(group, step);
            pair.update();
          }
          pair.compare("trained on");
        });
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.error, "");
    }
  }
}

TEST(FullyShard, AnInnerGuardLeavesTheOuterOnesMemory) {
  on_ranks(2, [&](comm::Group& group) {
    Wrapper model = fully_shard(Blocks(), group, {.shared_memory = false, .shard = small_units()});
    const WholeParameters outer = model.whole_parameters();
    { const WholeParameters inner = model.whole_parameters(); }
    for (const at::Tensor& parameter : model.parameters()) {
      EXPECT_NE(parameter.storage().data(), nullptr);
    }
  });
}

TEST(FullyShard, AModelCanBeWrappedAgain) {
  on_ranks(2, [&](comm::Group& group) {
    Blocks net;
    const at::Tensor before = net->in->weight.detach().clone();
    { const Wrapper model = fully_shard(net, group, {.shard = small_units()}); }
    { const Wrapper again = fully_shard(net, group, {.shard = small_units()}); }
    const Wrapper plain(net, group);
    expect_same_bits(net->in->weight, before, "whole again");
    EXPECT_EQ(sharded::ShardedMemory::of(net->in->weight), nullptr);
  });
}

TEST(FullyShard, AGatherThatFailsIsTold) {
  const auto outcomes = testing::try_ranks_over(
      "shm",
      [&](const comm::Group& group) {
        Wrapper model =
            fully_shard(Blocks(), group, {.shared_memory = false, .shard = small_units()});
        if (group.rank() == 1) {
          throw DataError("test", "gone");
        }
        EXPECT_THROW((void)model.whole_parameters(), CommError);
        EXPECT_TRUE(at::isnan(model.module()->out->weight.sum()).item<bool>());
        for (int i = 0; i < 2; ++i) {
          EXPECT_THROW((void)model(values({4, 3}, 1, at::kFloat)), CommError);
        }
        EXPECT_THAT(testing::error_of(
                        [&] { comm::all_reduce(model.module()->in->weight.detach(), group); }),
                    ::testing::HasSubstr("whose memory comes and goes"));
      },
      std::chrono::milliseconds(1500));
  EXPECT_EQ(outcomes[0].error, "");
}

/// What did not come is not there later either: not in a model of one unit, not for who writes.
TEST(FullyShard, AGatherThatFailedFailsAgain) {
  const auto outcomes = testing::try_ranks_over(
      "shm",
      [&](const comm::Group& group) {
        Wrapper model = fully_shard(Blocks(), group, {.shared_memory = false});
        at::Tensor weight = model.module()->in->weight;
        const auto memory = sharded::ShardedMemory::of(weight);
        const at::Tensor before = memory->part_of(weight).clone();
        if (group.rank() == 1) {
          throw DataError("test", "gone");
        }
        const at::Tensor x = values({4, 3}, 1, at::kFloat);
        for (int i = 0; i < 2; ++i) {
          EXPECT_THROW((void)model(x), CommError);
          EXPECT_THROW((void)model.forward_alone(x), CommError);
          EXPECT_THROW((void)model.whole_parameters(), CommError);
          const torch::NoGradGuard no_grad;
          weight.mul_(0.9);
        }
        expect_same_bits(memory->part_of(weight), before, "the last good values");
      },
      std::chrono::milliseconds(500));
  EXPECT_EQ(outcomes[0].error, "");
}

/// Gradients that somebody reads, and changes, before the step.
TEST(FullyShard, AGatherOfGradientsThatFailsIsToldByTheStep) {
  const auto outcomes = testing::try_ranks_over(
      "shm",
      [&](const comm::Group& group) {
        Wrapper model =
            fully_shard(Blocks(), group, {.shared_memory = false, .shard = small_units()});
        optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.1});
        ASSERT_TRUE(model.divide_step(optimizer));
        model(values({4, 3}, 1, at::kFloat)).square().mean().backward();
        if (group.rank() == 1) {
          throw DataError("test", "gone");
        }
        torch::nn::utils::clip_grad_norm_(model.parameters(), 0.01);
        EXPECT_THROW(optimizer.step(), CommError);
      },
      std::chrono::milliseconds(500));
  EXPECT_EQ(outcomes[0].error, "");
}

/// All ranks have made it, and it is over.
TEST(FullyShard, AStepWithoutGradientsEnds) {
  const auto outcomes = testing::try_ranks_over("shm", [&](const comm::Group& group) {
    Pair pair(group, optimizers()[2]);
    pair.backward(group, 0);
    pair.update();
    pair.update();
    if (group.rank() == 0) {
      const torch::NoGradGuard no_grad;
      const at::Tensor x = values({4, 3}, 7, at::kFloat);
      expect_same_bits(pair.sharded(x), pair.plain.module()->forward(x), "read alone");
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

/// Nobody would reduce its gradients.
TEST(FullyShard, StepsEndWithTheWrapper) {
  on_ranks(2, [&](comm::Group& group) {
    Blocks net;
    std::optional<Wrapper> model(fully_shard(net, group, {.shard = small_units()}));
    optim::Optimizer optimizer = optim::Adam(*model, {.lr = 0.02});
    ASSERT_TRUE(model->divide_step(optimizer));
    model.reset();
    net(values({4, 3}, group.rank(), at::kFloat)).square().mean().backward();
    EXPECT_THAT(testing::error_of([&] { optimizer.step(); }),
                ::testing::HasSubstr("is gone, or has another optimizer"));
  });
}

TEST(FullyShard, RefusesWhatItCannotDo) {
  on_ranks(2, [&](comm::Group& group) {
    using ::testing::HasSubstr;
    EXPECT_THAT(testing::error_of([&] {
                  (void)fully_shard(
                      Blocks(), group, {.memory_format = engine::MemoryFormat::kAuto});
                }),
                HasSubstr("memory_format = auto needs whole weights"));
    EXPECT_THAT(testing::error_of([&] {
                  (void)fully_shard(Blocks(), group, {.shard = ShardOptions{.degree = 3}});
                }),
                HasSubstr("2 ranks cannot be divided into groups of degree = 3"));
    const Mesh mesh(group, {{"dp", 2}});
    EXPECT_THAT(testing::error_of([&] { (void)fully_shard(Blocks(), mesh); }),
                HasSubstr("there is no axis \"sharding\". This mesh has dp=2"));
    ShardOptions both{.degree = 2, .mesh = Mesh(group, {{"sharding", 2}})};
    EXPECT_THAT(testing::error_of([&] { (void)fully_shard(Blocks(), group, {.shard = both}); }),
                HasSubstr("degree = 2 and a mesh, which has a degree of its own"));
    EXPECT_EQ(both.degree_of(2), 2);
    EXPECT_THAT(testing::error_of([&] { (void)both.degree_of(4); }),
                HasSubstr("the mesh has 2 ranks, and 4 are to divide"));
    Wrapper model = fully_shard(Blocks(), group, {.shard = small_units()});
    optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.1});
    EXPECT_THAT(testing::error_of([&] { (void)model.join(); }),
                HasSubstr("given to divide_step(): expected one, got 0"));
    EXPECT_THAT(
        testing::error_of([&] { (void)model.divide_step(optimizer, {.share_parameters = true}); }),
        HasSubstr("for ranks that have all parameters"));
    model(values({4, 3}, 1, at::kFloat)).sum().backward();
    EXPECT_THAT(testing::error_of([&] { optimizer.step(); }),
                HasSubstr("in.weight: its values are divided among processes"));
  });
}

}  // namespace
}  // namespace argosy::parallel
