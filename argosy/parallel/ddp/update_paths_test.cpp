/// Parameters shared or private, updates in backward or in step(): the bits are the same, and what
/// cannot be said is refused.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"

namespace argosy::parallel {
namespace {

using testing::error_of;
using testing::expect_same_bits;
using testing::expect_same_bits_after_a_join;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::process_group;
using testing::Recipe;
using testing::recipes;
using testing::Trained;
using testing::TwoLayers;
using testing::values;

std::vector<DivideOptions> all_ways() {
  return {{},
          {.share_parameters = true},
          {.overlap_update = true},
          {.share_parameters = true, .overlap_update = true}};
}

std::string text(const DivideOptions& way) {
  return std::string(way.share_parameters ? "shared" : "private") +
         (way.overlap_update ? ", in backward" : ", in step()");
}

/// Momentum, SGD, Adam: without clipping by norms.
std::vector<Recipe> unclipped() {
  std::vector<Recipe> all = recipes();
  all.erase(all.begin() + 1);
  all.push_back({"Adam of two groups, clipped by value", [](const auto& model) {
                   return optim::Adam(model,
                                      {.lr = 0.03, .grad_clip = optim::ClipGradByValue(0.05)},
                                      {{.names = {"*.bias"}, .lr_scale = 3}});
                 }});
  return all;
}

void expect_same_training(comm::Group& group,
                          const Recipe& recipe,
                          const DivideOptions& way,
                          int64_t hidden) {
  Trained one(group, recipe, true, hidden, way);
  Trained plain(group, recipe, false, hidden);
  ASSERT_TRUE(one.divided);
  for (int step = 0; step < 6; ++step) {
    for (Trained* each : {&one, &plain}) {
      each->optimizer.set_lr(0.02 / (1 + step));
      if (step == 3) {  // two passes, one step
        auto local = each->model.no_sync();
        each->backward(group, 17);
      }
      each->backward(group, step);
    }
    const std::string what = recipe.name + ", " + text(way) + ", step " + std::to_string(step);
    const auto x = one.model.parameters();
    const auto y = plain.model.parameters();
    for (size_t i = 0; i < x.size(); ++i) {
      expect_same_bits(x[i].grad(), y[i].grad(), what + ", gradient " + std::to_string(i));
    }
    for (Trained* each : {&one, &plain}) {
      each->optimizer.step();
      each->optimizer.zero_grad({.set_to_none = step % 2 == 1});
    }
    expect_same_bits(one.model, plain.model, what);
    expect_same_bits(one.optimizer.state_dict(), plain.optimizer.state_dict(), what);
  }
}

TEST(UpdatePaths, AllGiveTheSameBits) {
  for (const int size : {2, 3, 5}) {
    for (const Recipe& recipe : unclipped()) {
      for (const DivideOptions& way : all_ways()) {
        on_ranks(size, [&](comm::Group& group) { expect_same_training(group, recipe, way, 37); });
      }
    }
  }
}

TEST(UpdatePaths, AllGiveTheSameBitsBetweenProcesses) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    comm::Group group = process_group(folder, rank, 2);
                    for (const DivideOptions& way : all_ways()) {
                      expect_same_training(group, recipes()[0], way, 4001);
                    }
                  },
                  {.mode = test::RankMode::kProcesses});
}

/// Without memory that the ranks share nothing is divided, and updates may still run early.
TEST(UpdatePaths, UpdatesInBackwardOfRanksThatShareNothing) {
  on_ranks(3, [](comm::Group& group) {
    Trained early(
        group, recipes()[0], false, 37, {.share_parameters = true, .overlap_update = true});
    Trained plain(group, recipes()[0], false);
    EXPECT_FALSE(early.divided);
    for (int step = 0; step < 4; ++step) {
      early.backward(group, step);
      plain.backward(group, step);
      EXPECT_FALSE(torch::equal(early.model.parameters()[0], plain.model.parameters()[0]))
          << "the update has been made";
      for (Trained* each : {&early, &plain}) {
        each->optimizer.step();
        each->optimizer.zero_grad();
      }
      expect_same_bits(early.model, plain.model, "step " + std::to_string(step));
    }
  });
}

TEST(UpdatePaths, SharedParametersAreOneCopyAndPartAtTheEnd) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    comm::Group group = process_group(folder, rank, 2);
                    TwoLayers net(0.5, 37);
                    {
                      DistributedDataParallel<TwoLayers> model(net, group);
                      optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.02});
                      ASSERT_TRUE(model.divide_step(optimizer, {.share_parameters = true}));
                      comm::barrier(group);
                      if (rank == 1) {
                        torch::NoGradGuard no_grad;
                        net->first->weight.fill_(3);
                      }
                      comm::barrier(group);
                      EXPECT_EQ(net->first->weight.sum().item<double>(), 3 * 3 * 37);
                    }
                    comm::barrier(group);
                    torch::NoGradGuard no_grad;
                    net->first->weight.fill_(rank);
                    comm::barrier(group);
                    EXPECT_EQ(net->first->weight.sum().item<double>(), rank * 3 * 37);
                  },
                  {.mode = test::RankMode::kProcesses});
}

TEST(UpdatePaths, AJoinPartsThem) {
  on_ranks(3, [](comm::Group& group) {
    Trained one(group, recipes()[0], true, 37, {.share_parameters = true, .overlap_update = true});
    Trained plain(group, recipes()[0], false);
    expect_same_bits_after_a_join(group, one, plain);
  });
}

/// The weights are laid out anew, each rank by itself, while they are shared.
TEST(UpdatePaths, AMemoryFormatIsChosenUnderSharedParameters) {
  on_ranks(2, [](comm::Group& group) {
    const auto train = [&](const DivideOptions& way) {
      torch::nn::Sequential net(
          torch::nn::Conv2d(3, 8, 3), torch::nn::ReLU(), torch::nn::Flatten());
      testing::fill(*net, 1);
      DistributedDataParallel<torch::nn::Sequential> model(
          net, group, {.memory_format = engine::MemoryFormat::kAuto});
      optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.01});
      EXPECT_TRUE(model.divide_step(optimizer, way));
      for (int step = 0; step < 4; ++step) {
        const at::Tensor images = values({2, 3, 6, 6}, group.rank() + 10.0 * step, at::kFloat);
        model.forward<at::Tensor>(images).square().sum().backward();
        optimizer.step();
        optimizer.zero_grad();
      }
      EXPECT_EQ(model.stats().memory_format, "channels_last");
      return net->parameters()[0].detach().clone();
    };
    const at::Tensor plain = train({});
    for (const DivideOptions& way : all_ways()) {
      expect_same_bits(train(way), plain, text(way));
    }
  });
}

TEST(UpdatePaths, BackwardTwiceBeforeAStepIsRefused) {
  on_ranks(2, [](comm::Group& group) {
    Trained each(group, recipes()[0], true, 37, {.overlap_update = true});
    each.backward(group, 0);
    EXPECT_THAT(error_of([&] { (void)each.optimizer.state_dict(); }),
                HasSubstr("state_dict() between backward() and step()"));
    EXPECT_THAT(error_of([&] { each.backward(group, 1); }),
                HasSubstr("backward() again before optimizer.step()"));
  });
}

/// One rank has made its early updates by another learning rate: found in step(), which nobody
/// completes.
TEST(UpdatePaths, ARankThatUpdatesOtherwiseIsNamed) {
  on_ranks(3, [](comm::Group& group) {
    Trained each(group, recipes()[0], true, 37, {.overlap_update = true}, false);
    each.step(group, 0);
    if (group.rank() == 1) {
      each.optimizer.set_lr(0.5);
    }
    each.backward(group, 1);
    for (int time = 0; time < 2; ++time) {
      EXPECT_THAT(error_of([&] { each.optimizer.step(); }),
                  HasSubstr("rank 1: learning rate of first.weight 0.5, rank 0:"));
    }
  });
}

TEST(UpdatePaths, WhatCannotBeAheadOfStepIsRefused) {
  on_ranks(2, [](comm::Group& group) {
    const auto refused = [&](const Recipe& recipe, const DdpOptions& options, bool hook) {
      DistributedDataParallel<TwoLayers> model(TwoLayers(), group, options);
      if (hook) {
        model.register_comm_hook(fp16_compress(), "fp16");
      }
      optim::Optimizer optimizer = recipe.make(model);
      return error_of([&] { model.divide_step(optimizer, {.overlap_update = true}); });
    };
    EXPECT_THAT(refused(recipes()[1], {}, false), HasSubstr("clipping by norms"));
    EXPECT_THAT(refused(recipes()[0], {.find_unused_parameters = true}, false),
                HasSubstr("find_unused_parameters"));
    EXPECT_THAT(refused(recipes()[0], {}, true), HasSubstr("communication hook \"fp16\""));
    Trained each(group, recipes()[0], true, 37, {.overlap_update = true});
    EXPECT_THAT(error_of([&] { each.model.register_comm_hook(fp16_compress()); }),
                HasSubstr("overlap_update"));
  });
}

TEST(UpdatePaths, ARankThatDiesInBackwardIsNamed) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      3,
      [&](int rank) {
        comm::Group group = process_group(folder, rank, 3);
        Trained each(
            group, recipes()[0], true, 37, {.share_parameters = true, .overlap_update = true});
        each.step(group, 0);
        if (rank == 2) {
          raise(SIGKILL);
        }
        each.step(group, 1);
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
