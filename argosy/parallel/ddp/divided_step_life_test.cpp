/// When divided steps begin and end, what they refuse, and what remains.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::AllOf;
using testing::error_of;
using testing::expect_same_bits;
using testing::expect_same_bits_after_a_join;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::process_group;
using testing::recipes;
using testing::Trained;
using testing::TwoLayers;
using testing::values;

TEST(DividedStep, WhatWasTrainedBeforeGoesOn) {
  on_ranks(2, [](comm::Group& group) {
    Trained late(group, recipes()[0], true);
    Trained plain(group, recipes()[0], false);
    late.optimizer.impl()->divide(nullptr);
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        EXPECT_TRUE(late.model.divide_step(late.optimizer));
      }
      late.step(group, step);
      plain.step(group, step);
    }
    expect_same_bits(late.model, plain.model, "divided from the fourth step on");
    late.optimizer.impl()->divide(nullptr);
    expect_same_bits(late.optimizer.state_dict(), plain.optimizer.state_dict(), "its state");
  });
}

TEST(DividedStep, AJoinEndsIt) {
  on_ranks(3, [](comm::Group& group) {
    Trained divided(group, recipes()[0], true);
    Trained plain(group, recipes()[0], false);
    expect_same_bits_after_a_join(group, divided, plain);
  });
}

TEST(DividedStep, ParametersWhoseMemoryOthersUseStay) {
  on_ranks(2, [](comm::Group& group) {
    TwoLayers net(0.5, 37);
    const at::Tensor alias = net->first->weight.detach();
    DistributedDataParallel<TwoLayers> model(net, group);
    EXPECT_EQ(alias.data_ptr(), net->first->weight.data_ptr());
    optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.02});
    EXPECT_TRUE(model.divide_step(optimizer));
    Trained plain(group, recipes()[0], false);
    for (int step = 0; step < 3; ++step) {
      model(values({4, 3}, group.rank() + 10.0 * step)).square().sum().backward();
      optimizer.step();
      optimizer.zero_grad();
      plain.step(group, step);
    }
    expect_same_bits(model, plain.model, "one parameter each rank updates alone");
    EXPECT_EQ(alias.data_ptr(), net->first->weight.data_ptr());
  });
}

/// Wrapping again moves the parameters elsewhere: state that all saw is each rank's own from there
/// on.
TEST(DividedStep, WrappedAgainTheOptimizerGoesOn) {
  on_ranks(3, [](comm::Group& group) {
    TwoLayers net(0.5, 37);
    TwoLayers same(0.5, 37);
    auto model = std::make_unique<DistributedDataParallel<TwoLayers>>(net, group);
    DistributedDataParallel<TwoLayers> plain(same, group, {.shared_memory = false});
    optim::Optimizer optimizer = optim::Adam(net, {.lr = 0.02});
    optim::Optimizer plain_optimizer = optim::Adam(same, {.lr = 0.02});
    ASSERT_TRUE(model->divide_step(optimizer));
    for (int step = 0; step < 8; ++step) {
      if (step == 2 || step == 6) {
        model = std::make_unique<DistributedDataParallel<TwoLayers>>(net, group);
      }
      if (step == 4) {
        ASSERT_TRUE(model->divide_step(optimizer));
      }
      if (step == 5) {  // as torch::load() does
        torch::NoGradGuard no_grad;
        net->first->weight.set_data(net->first->weight.detach().clone());
      }
      const auto train = [&](auto& wrapped, optim::Optimizer& each) {
        wrapped(values({4, 3}, group.rank() + 10.0 * step)).square().sum().backward();
        each.step();
        each.zero_grad();
      };
      train(*model, optimizer);
      train(plain, plain_optimizer);
      expect_same_bits(*model, plain, "step " + std::to_string(step));
      expect_same_bits(optimizer.state_dict(), plain_optimizer.state_dict(), "its state");
    }
  });
}

TEST(DividedStep, ALoadOnOneRankDoesNotReachInToWhatAnotherSaves) {
  on_ranks(2, [](comm::Group& group) {
    Trained each(group, recipes()[0], true);
    const optim::OptimizerState fresh = each.optimizer.state_dict().clone();
    each.step(group, 0);
    const optim::OptimizerState saved = each.optimizer.state_dict();  // refers to what is shared
    const optim::OptimizerState copy = saved.clone();
    comm::barrier(group);
    if (group.rank() == 1) {
      optim::OptimizerState other = copy.clone();
      for (auto& [name, entry] : other.parameters) {
        entry.at("exp_avg").fill_(7);
      }
      each.optimizer.load_state_dict(other);
      each.optimizer.load_state_dict(fresh);
    }
    comm::barrier(group);
    expect_same_bits(saved, copy, "after the other rank has loaded");
  });
}

TEST(DividedStep, WeightsThatOneRankHasChangedAreFound) {
  on_ranks(2, [](comm::Group& group) {
    Trained each(group, recipes()[0], true);
    each.step(group, 0);
    each.backward(group, 1);
    if (group.rank() == 1) {
      torch::NoGradGuard no_grad;
      each.model->second->weight.mul_(0.5);
    }
    EXPECT_THAT(error_of([&] { each.optimizer.step(); }),
                AllOf(HasSubstr("step 2 of an optimizer that is divided differs"),
                      HasSubstr("rank 1: some elements of second.weight"),
                      HasSubstr(".divide_update = false")));
  });
}

TEST(DividedStep, GradientsThatWereNotAveragedAreFound) {
  on_ranks(2, [](comm::Group& group) {
    Trained each(group, recipes()[0], true);
    each.step(group, 0);
    {
      auto local = each.model.no_sync();
      each.backward(group, 1);
    }
    EXPECT_THAT(error_of([&] { each.optimizer.step(); }),
                HasSubstr("rank 1: some elements of the gradient of first.weight"));
  });
}

TEST(DividedStep, ARankThatMakesAnotherStepIsNamed) {
  on_ranks(3, [](comm::Group& group) {
    Trained each(group, recipes()[0], true);
    each.step(group, 0);
    const at::Tensor before = each.model.parameters()[0].detach().clone();
    each.backward(group, 1);
    if (group.rank() == 1) {
      each.optimizer.set_lr(0.5);
    }
    const std::string error = error_of([&] { each.optimizer.step(); });
    EXPECT_THAT(error, HasSubstr("rank 1: learning rate of first.weight 0.5, rank 0: 0.02"));
    expect_same_bits(before, each.model.parameters()[0], "nothing has changed");
    each.optimizer.set_lr(0.02);
    each.optimizer.step();
  });
}

TEST(DividedStep, ItsMemoryGoesWithIt) {
  on_ranks(2, [](comm::Group& group) {
    std::vector<at::Tensor> kept;
    {
      Trained each(group, recipes()[0], true);
      each.step(group, 0);
      kept = each.model.parameters();
      each.backward(group, 1);
      kept.push_back(kept[0].grad());
    }
    const at::Tensor copy = kept[0].detach().clone();
    group.destroy();
    expect_same_bits(copy, kept[0], "a parameter outlives wrapper and group");
    EXPECT_GT(kept.back().abs().sum().item<double>(), 0);
  });
}

/// Real processes and real shared memory; a rank dies before its step.
TEST(DividedStep, ARankThatDiesIsNamedByTheStepOfTheOthers) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      3,
      [&](int rank) {
        comm::Group group = process_group(folder, rank, 3);
        Trained each(group, recipes()[0], true);
        ASSERT_TRUE(each.divided);
        each.step(group, 0);
        each.backward(group, 1);
        if (rank == 2) {
          raise(SIGKILL);
        }
        try {
          each.optimizer.step();
        } catch (...) {
          const at::Tensor parameter = each.model.parameters()[0];
          EXPECT_TRUE(at::isfinite(parameter).all().item<bool>());  // and may still be read
          throw;
        }
      },
      {.mode = test::RankMode::kProcesses});
  EXPECT_EQ(outcomes[2].signal, SIGKILL);
  for (const int rank : {0, 1}) {
    const auto& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.peers, ::testing::ElementsAre(2)) << describe(outcome);
  }
}

}  // namespace
}  // namespace argosy::parallel
