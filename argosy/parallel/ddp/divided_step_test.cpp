/// A divided step gives the bits of an undivided one.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"

namespace argosy::parallel {
namespace {

using testing::expect_same_bits;
using testing::expect_state_can_be_loaded;
using testing::Mixed;
using testing::on_ranks;
using testing::process_group;
using testing::Recipe;
using testing::recipes;
using testing::Trained;
using testing::TwoHeads;
using testing::values;

TEST(DividedStep, GivesTheBitsOfStepsThatEachRankMakesAlone) {
  for (const int size : {2, 3, 5}) {
    for (const Recipe& recipe : recipes()) {
      on_ranks(size, [&](comm::Group& group) {
        Trained divided(group, recipe, true);
        Trained plain(group, recipe, false);
        ASSERT_TRUE(divided.divided);
        ASSERT_FALSE(plain.divided);
        for (int step = 0; step < 6; ++step) {
          divided.step(group, step);
          plain.step(group, step);
          expect_same_bits(divided.model, plain.model, recipe.name);
          expect_same_bits(
              divided.optimizer.state_dict(), plain.optimizer.state_dict(), recipe.name);
        }
      });
    }
  }
}

TEST(DividedStep, GradientsAreStillThereAndMayBeChanged) {
  on_ranks(3, [](comm::Group& group) {
    Trained divided(group, recipes()[0], true);
    Trained plain(group, recipes()[0], false);
    for (int step = 0; step < 4; ++step) {
      for (Trained* each : {&divided, &plain}) {
        torch::NoGradGuard no_grad;
        {
          torch::AutoGradMode grad(true);
          each->backward(group, step);
        }
        for (at::Tensor& parameter : each->model.parameters()) {
          parameter.mutable_grad().mul_(0.5);  // of this rank: the others do the same
          parameter.mul_(0.9);
        }
        each->optimizer.step();
        each->optimizer.zero_grad({.set_to_none = step % 2 == 0});
      }
      expect_same_bits(divided.model, plain.model, "step " + std::to_string(step));
    }
  });
}

TEST(DividedStep, StateIsWholeOnEachRankAndCanBeLoaded) {
  on_ranks(3, [](comm::Group& group) {
    Trained first(group, recipes()[1], true);
    Trained second(group, recipes()[1], true);
    expect_state_can_be_loaded(group, first, second);
  });
}

TEST(DividedStep, ParametersOfAllKinds) {
  on_ranks(5, [](comm::Group& group) {
    DistributedDataParallel<Mixed> model(Mixed(), group);
    DistributedDataParallel<Mixed> plain(Mixed(), group, {.shared_memory = false});
    optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.02});
    optim::Optimizer plain_optimizer = optim::Adam(plain, {.lr = 0.02});
    ASSERT_TRUE(model.divide_step(optimizer));
    for (int step = 0; step < 4; ++step) {
      const auto train = [&](auto& wrapped, optim::Optimizer& each) {
        wrapped(0.3 + 0.1 * group.rank() + step).backward();
        each.step();
        each.zero_grad();
      };
      train(model, optimizer);
      train(plain, plain_optimizer);
      const auto x = model.parameters();
      const auto y = plain.parameters();
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(x[i].strides(), y[i].strides());
        expect_same_bits(x[i], y[i], "parameter " + std::to_string(i));
      }
      expect_same_bits(optimizer.state_dict(), plain_optimizer.state_dict(), "its state");
    }
  });
}

TEST(DividedStep, OptimizersOfPartsOfAModel) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel<TwoHeads> model(TwoHeads(), group);
    optim::Optimizer trunk = optim::Adam(model->trunk, {.lr = 0.01});
    optim::Optimizer left = optim::SGD(model->left, {.lr = 0.1});
    EXPECT_TRUE(model.divide_step(trunk));
    EXPECT_TRUE(model.divide_step(left));
    TwoHeads same;
    DistributedDataParallel<TwoHeads> plain(same, group, {.shared_memory = false});
    optim::Optimizer plain_trunk = optim::Adam(plain->trunk, {.lr = 0.01});
    optim::Optimizer plain_left = optim::SGD(plain->left, {.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      const auto train = [&](auto& wrapped, auto& one, auto& other) {
        auto [l, r] = wrapped(values({4, 3}, group.rank() + 7.0 * step), true, true);
        (l.sum() + r.sum()).backward();
        one.step();
        other.step();
        one.zero_grad();
        other.zero_grad();
      };
      train(model, trunk, left);
      train(plain, plain_trunk, plain_left);
    }
    const auto x = model.parameters();
    const auto y = plain.parameters();
    for (size_t i = 0; i < x.size(); ++i) {
      expect_same_bits(x[i], y[i], "parameter " + std::to_string(i));
    }
  });
}

TEST(DividedStep, GivesTheSameBitsBetweenProcesses) {
  const test::TempDir folder;
  test::run_ranks(3,
                  [&](int rank) {
                    comm::Group group = process_group(folder, rank, 3);
                    for (const Recipe& recipe : recipes()) {
                      Trained divided(group, recipe, true, 4001);  // more than a slot of gradients
                      Trained plain(group, recipe, false, 4001);
                      ASSERT_TRUE(divided.divided);
                      for (int step = 0; step < 4; ++step) {
                        divided.step(group, step);
                        plain.step(group, step);
                        expect_same_bits(divided.model, plain.model, recipe.name);
                      }
                      expect_same_bits(divided.optimizer.state_dict(),
                                       plain.optimizer.state_dict(),
                                       recipe.name);
                    }
                  },
                  {.mode = test::RankMode::kProcesses});
}

}  // namespace
}  // namespace argosy::parallel
