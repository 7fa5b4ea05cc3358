// Divided parameters where ranks have different numbers of virtual ranks, or none.
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "argosy/base/even_part.h"
#include "argosy/parallel/ddp/core.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"

namespace argosy::parallel {
namespace {

using testing::Blocks;
using testing::expect_same_bits;
using testing::on_ranks;
using testing::optimizers;
using testing::small_units;
using testing::values;
using Wrapper = testing::ShardedBlocks;

/// How virtual ranks are trained, on any number of processes.
struct FollowRecipe {
  int64_t virtual_ranks = 6;
  int degree = 0;  ///< of the division; -1: not divided
  int micros = 2;
  bool clears = true;  ///< gradients, else later updates add to them
  bool clears_in_passes = false;
  int64_t deals_to = 0;  ///< after the first update
  int64_t kept = 1;      ///< units
};

MicroBatch micro_batch_of(const IndexRange& leaves, int64_t leaf, int micro, int micros) {
  return {.leaf = leaf - leaves.begin, .leaves = leaves.size(), .micro = micro, .micros = micros};
}

at::Tensor batch_of(int64_t leaf, int step, int micro = 0) {
  return values({4, 3}, static_cast<double>(leaf) + 10.0 * step + 0.5 * micro, at::kFloat);
}

/// Parameters, averages and what an evaluation says after it, of rank 0.
std::vector<at::Tensor> train_virtual_ranks(const FollowRecipe& recipe, int size, bool share) {
  std::vector<at::Tensor> result;
  on_ranks(size, [&](comm::Group& group) {
    DdpOptions options{.shared_memory = share, .virtual_ranks = recipe.virtual_ranks};
    if (recipe.degree >= 0) {
      options.shard = small_units();
      options.shard->degree = recipe.degree;
      options.shard->kept = recipe.kept;
    }
    Wrapper model(Blocks(), group, options);
    optim::Optimizer optimizer = optimizers()[3].make(model);
    (void)model.divide_step(optimizer);
    at::Tensor evaluated;
    for (int step = 0; step < 4; ++step) {
      if (step == 1 && recipe.deals_to > 0) {
        options.virtual_ranks = recipe.deals_to;
        ddp::Core::for_each(group, [&](ddp::Core& core) { core.deal_to(recipe.deals_to); });
      }
      const IndexRange leaves = even_part(options.virtual_ranks, size, group.rank());
      for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
        for (int micro = 0; micro < recipe.micros; ++micro) {
          model.begin(micro_batch_of(leaves, leaf, micro, recipe.micros));
          if (recipe.clears_in_passes && leaf == leaves.begin && micro == 0) {
            optimizer.zero_grad({.set_to_none = step % 2 == 0});
          }
          model(batch_of(leaf, step, micro)).square().mean().backward();
        }
      }
      model.end_update();
      optimizer.step();
      if (recipe.clears && !recipe.clears_in_passes) {
        optimizer.zero_grad({.set_to_none = step % 2 == 0});
      }
      if (step % 2 == 1) {
        const torch::NoGradGuard no_grad;
        evaluated = model.forward_alone(batch_of(7, step)).clone();
      }
    }
    std::vector<at::Tensor> mine{evaluated};
    const WholeParameters whole = model.whole_parameters();
    for (const at::Tensor& parameter : model.parameters()) {
      mine.push_back(parameter.detach().clone());
      if (parameter.grad().defined()) {
        mine.push_back(parameter.grad().clone());
      }
    }
    if (group.rank() == 0) {
      result = mine;
    }
  });
  return result;
}

void expect_same_on(const std::vector<int>& sizes, FollowRecipe recipe) {
  FollowRecipe plain = recipe;
  plain.degree = -1;
  const std::vector<at::Tensor> expected =
      train_virtual_ranks(plain, static_cast<int>(recipe.virtual_ranks), /*share=*/false);
  for (const int size : sizes) {
    for (const bool share : {true, false}) {
      const std::vector<at::Tensor> result = train_virtual_ranks(recipe, size, share);
      ASSERT_EQ(result.size(), expected.size());
      for (size_t i = 0; i < result.size(); ++i) {
        expect_same_bits(
            result[i], expected[i], std::to_string(i) + " of " + std::to_string(size) + " ranks");
      }
    }
  }
}

TEST(FewerVirtualRanks, VirtualRanksHaveTheSameBitsOnAnyNumberOfProcesses) {
  expect_same_on({1, 2, 3, 6}, {});
}

TEST(FewerVirtualRanks, RanksWithFewerVirtualRanksFollowTheOthers) {
  expect_same_on({4, 5}, {.virtual_ranks = 6});
  expect_same_on({3}, {.virtual_ranks = 4, .micros = 1});
  expect_same_on({3}, {.virtual_ranks = 8, .micros = 3});
  expect_same_on({4}, {.virtual_ranks = 6, .kept = 0});
}

TEST(FewerVirtualRanks, SparesFollowTheOthers) {
  expect_same_on({4, 5}, {.virtual_ranks = 3});
  expect_same_on({3}, {.virtual_ranks = 1, .micros = 1});
  expect_same_on({4}, {.virtual_ranks = 3, .kept = 0});
}

TEST(FewerVirtualRanks, WhoFollowsMayDivideWithAFewRanksOnly) {
  expect_same_on({4}, {.virtual_ranks = 6, .degree = 2});
  expect_same_on({4}, {.virtual_ranks = 5, .degree = 2});
  expect_same_on({4}, {.virtual_ranks = 3, .degree = 2});
  expect_same_on({6}, {.virtual_ranks = 4, .degree = 3});
}

TEST(FewerVirtualRanks, WhoFollowsAddsToGradientsAndClearsThem) {
  expect_same_on({4, 8}, {.virtual_ranks = 6, .clears = false});
  expect_same_on({4, 8}, {.virtual_ranks = 6, .clears_in_passes = true});
}

TEST(FewerVirtualRanks, VirtualRanksCanBeDealtAnew) {
  expect_same_on({3, 4, 5}, {.virtual_ranks = 4, .deals_to = 6});
  expect_same_on({4}, {.virtual_ranks = 4, .deals_to = 3});
}

/// As a generator and a discriminator, whose passes mix.
TEST(FewerVirtualRanks, WhoFollowsSeesToSeveralWrappers) {
  for (const int virtual_ranks : {5, 2}) {
    std::vector<at::Tensor> expected;
    for (const auto& [size, divides] : {std::pair(virtual_ranks, false), {3, true}}) {
      on_ranks(size, [&, divides = divides](comm::Group& group) {
        DdpOptions options{.shared_memory = divides, .virtual_ranks = virtual_ranks};
        if (divides) {
          options.shard = small_units();
        }
        Wrapper first(Blocks(), group, options);
        Wrapper second(Blocks(12, 2), group, options);
        optim::Optimizer a = optim::Adam(first, {.lr = 0.01});
        optim::Optimizer b = optim::Adam(second, {.lr = 0.01});
        (void)first.divide_step(a);
        (void)second.divide_step(b);
        const IndexRange leaves = even_part(virtual_ranks, group.size(), group.rank());
        for (int step = 0; step < 3; ++step) {
          for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
            first.begin(micro_batch_of(leaves, leaf, 0, 1));
            second.begin(micro_batch_of(leaves, leaf, 0, 1));
            const at::Tensor hidden = first(batch_of(leaf, step));
            (second(batch_of(leaf, step + 1)).sum() * hidden.square().mean()).backward();
          }
          for (Wrapper* const model : {&first, &second}) {
            model->end_update();
          }
          for (optim::Optimizer* const each : {&a, &b}) {
            each->step();
            each->zero_grad();
          }
          const torch::NoGradGuard no_grad;
          for (Wrapper* const model : {&first, &second}) {
            for (at::Tensor& parameter : model->parameters()) {
              parameter.mul_(0.9);  // in wholes that are there when the others begin
            }
          }
        }
        std::vector<at::Tensor> mine;
        for (const Wrapper* const model : {&first, &second}) {
          for (const at::Tensor& parameter : model->parameters()) {
            mine.push_back(parameter.detach().clone());
          }
        }
        if (group.rank() == 0) {
          expected = expected.empty() ? mine : expected;
          for (size_t i = 0; i < mine.size(); ++i) {
            expect_same_bits(mine[i], expected[i], std::to_string(i));
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace argosy::parallel
