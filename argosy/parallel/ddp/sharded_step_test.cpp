/// Steps of ranks that share no memory, each of which has the averages of its part only.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"

namespace argosy::parallel {
namespace {

using testing::error_of;
using testing::expect_same_bits;
using testing::expect_state_can_be_loaded;
using ::testing::HasSubstr;
using testing::Mixed;
using testing::on_ranks;
using testing::Recipe;
using testing::Trained;
using testing::TwoHeads;
using testing::TwoLayers;
using testing::values;

constexpr DivideOptions kScattered{.scatter_gradients = true};
constexpr int64_t kHidden = 1500;  // some whole blocks of each parameter for each rank

std::vector<Recipe> all_optimizers() {
  return {
      {"Adam", [](const auto& model) { return optim::Adam(model, {.lr = 0.02}); }},
      {"AdamW of two groups, clipped",
       [](const auto& model) {
         return optim::AdamW(
             model,
             {.lr = 0.03, .amsgrad = true, .grad_clip = optim::ClipGradByValue(0.05)},
             {{.names = {"*.bias"}, .lr_scale = 3, .weight_decay = 0.0}});
       }},
      {"Momentum",
       [](const auto& model) { return optim::Momentum(model, {.lr = 0.1, .nesterov = true}); }},
      {"RMSProp",
       [](const auto& model) {
         return optim::RMSProp(model, {.lr = 0.01, .momentum = 0.5, .centered = true});
       }},
      {"Adagrad", [](const auto& model) { return optim::Adagrad(model, {.lr = 0.05}); }},
      {"SGD, which has no state", [](const auto& model) { return optim::SGD(model, {.lr = 0.1}); }},
      {"Lamb, by norms of whole parameters",
       [](const auto& model) { return optim::Lamb(model, {.lr = 0.02}); }},
      {"Lars", [](const auto& model) { return optim::Lars(model, {.lr = 0.5}); }}};
}

Trained scattered(const comm::Group& group, const Recipe& recipe, int64_t hidden = kHidden) {
  return Trained(group, recipe, /*shared=*/false, hidden, kScattered);
}

TEST(ShardedStep, GivesTheBitsOfStepsThatEachRankMakesAlone) {
  for (const int size : {2, 3, 5}) {
    for (const Recipe& recipe : all_optimizers()) {
      on_ranks(size, [&](comm::Group& group) {
        Trained sharded = scattered(group, recipe);
        Trained plain(group, recipe, false, kHidden);
        ASSERT_TRUE(sharded.divided);
        ASSERT_NE(sharded.optimizer.impl()->sharded(), nullptr);
        for (int step = 0; step < 5; ++step) {
          sharded.step(group, step);
          plain.step(group, step);
          expect_same_bits(sharded.model, plain.model, recipe.name);
          expect_same_bits(
              sharded.optimizer.state_dict(), plain.optimizer.state_dict(), recipe.name);
        }
      });
    }
  }
}

TEST(ShardedStep, GivesTheBitsOverTwoHosts) {
  const auto outcomes = testing::try_ranks_over("hierarchical", [](const comm::Group& group) {
    Trained sharded = scattered(group, all_optimizers()[0]);
    Trained plain(group, all_optimizers()[0], true, kHidden);
    EXPECT_TRUE(sharded.divided);
    EXPECT_FALSE(plain.divided) << "ranks of two hosts share no memory";
    for (int step = 0; step < 4; ++step) {
      sharded.step(group, step);
      plain.step(group, step);
      expect_same_bits(sharded.model, plain.model, "step " + std::to_string(step));
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

TEST(ShardedStep, ARankKeepsItsPartOfTheAveragesAndWhoReadsThemGetsAll) {
  on_ranks(3, [](comm::Group& group) {
    Trained sharded = scattered(group, all_optimizers()[0]);
    Trained plain(group, all_optimizers()[0], false, kHidden);
    sharded.backward(group, 0);
    plain.backward(group, 0);
    int64_t own = 0, others = 0;
    const auto parameters = sharded.model.parameters();
    for (const at::Tensor& parameter : parameters) {
      EXPECT_EQ(parameter.grad().storage().data(), nullptr) << "nobody has read it yet";
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor& wanted = plain.model.parameters()[i].grad();
      const optim::ShardedStep& step = *sharded.optimizer.impl()->sharded();
      const IndexRange part = step.part_of(parameters[i]);
      expect_same_bits(step.gradient_of(parameters[i]),
                       wanted.flatten().slice(0, part.begin, part.end),
                       "the average");
      expect_same_bits(parameters[i].grad(), wanted, "all of it");
      own += part.size();
      others += wanted.numel() - part.size();
    }
    EXPECT_GT(own, 0);
    EXPECT_GT(others, own);
  });
}

TEST(ShardedStep, KeepsItsPartOfTheStateOnly) {
  on_ranks(4, [](comm::Group& group) {
    Trained sharded = scattered(group, all_optimizers()[0], 4000);
    sharded.step(group, 0);
    int64_t part = 0, whole = 0;
    for (const at::Tensor& parameter : sharded.model.parameters()) {
      part += sharded.optimizer.impl()->sharded()->part_of(parameter).size();
      whole += parameter.numel();
    }
    EXPECT_LT(part, whole / 3);
  });
}

TEST(ShardedStep, ClipsByTheNormOfAllParts) {
  for (const bool global : {true, false}) {
    const Recipe recipe{
        "clipped", [&](const auto& model) {
          return optim::SGD(model,
                            {.lr = 0.1,
                             .grad_clip = global ? optim::GradClip(optim::ClipGradByGlobalNorm(0.1))
                                                 : optim::GradClip(optim::ClipGradByNorm(0.05))});
        }};
    on_ranks(3, [&](comm::Group& group) {
      Trained sharded = scattered(group, recipe);
      Trained plain(group, recipe, false, kHidden);
      for (int step = 0; step < 4; ++step) {
        sharded.step(group, step);
        plain.step(group, step);
      }
      const auto x = sharded.model.parameters();
      const auto y = plain.model.parameters();
      for (size_t i = 0; i < x.size(); ++i) {
        expect_same_bits(x[i], y[i], global ? "by all" : "by its own");
        const std::vector<at::Tensor> all = comm::all_gather(x[i].detach(), group);
        expect_same_bits(all.front(), all.back(), "between ranks");
      }
    });
  }
}

TEST(ShardedStep, StateIsGatheredAndCanBeLoaded) {
  on_ranks(3, [](comm::Group& group) {
    const Recipe recipe = all_optimizers()[1];
    Trained first(group, recipe, false, kHidden);
    Trained second = scattered(group, recipe);
    expect_state_can_be_loaded(group, first, second);
  });
}

TEST(ShardedStep, WhatWasTrainedBeforeGoesOnAndSoDoesWhatComesAfter) {
  on_ranks(2, [](comm::Group& group) {
    Trained one(group, all_optimizers()[0], false, kHidden);
    Trained plain(group, all_optimizers()[0], false, kHidden);
    for (int step = 0; step < 9; ++step) {
      if (step == 3) {
        EXPECT_TRUE(one.model.divide_step(one.optimizer, kScattered));
      }
      if (step == 6) {
        EXPECT_FALSE(one.model.divide_step(one.optimizer));
      }
      one.step(group, step);
      plain.step(group, step);
      expect_same_bits(one.model, plain.model, "step " + std::to_string(step));
    }
    expect_same_bits(one.optimizer.state_dict(), plain.optimizer.state_dict(), "its state");
  });
}

/// The layers' gradients arrive in the order of registration, so that buckets are made anew, and
/// the one of two layers is of two others then.
struct UpsideDownImpl : torch::nn::Module {
  UpsideDownImpl() {
    last = register_module("last", torch::nn::Linear(11, 2));
    middle = register_module("middle", torch::nn::Linear(7, 11));
    first = register_module("first", torch::nn::Linear(3, 7));
    to(torch::kDouble);
    testing::fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(middle(first(x).tanh()).tanh()); }
  torch::nn::Linear last{nullptr}, middle{nullptr}, first{nullptr};
};
TORCH_MODULE(UpsideDown);

/// Trains two wrappers, one of them with scattered gradients, whose parameters must stay equal.
template <typename Holder, typename Forward>
void expect_equal_training(const comm::Group& group,
                           const Holder& net,
                           const Holder& other,
                           DdpOptions options,
                           const Forward& forward) {
  DistributedDataParallel<Holder> sharded(net, group, options);
  DistributedDataParallel<Holder> plain(other, group, options);
  optim::Optimizer optimizer = optim::Adam(sharded, {.lr = 0.02});
  optim::Optimizer plain_optimizer = optim::Adam(plain, {.lr = 0.02});
  ASSERT_TRUE(sharded.divide_step(optimizer, kScattered));
  for (int step = 0; step < 4; ++step) {
    const auto train = [&](auto& wrapped, optim::Optimizer& each) {
      forward(wrapped, step).backward();
      each.step();
      each.zero_grad({.set_to_none = step % 2 == 0});
    };
    train(sharded, optimizer);
    train(plain, plain_optimizer);
    const auto x = sharded.parameters();
    const auto y = plain.parameters();
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(x[i].strides(), y[i].strides());
      expect_same_bits(x[i], y[i], "parameter " + std::to_string(i));
    }
    expect_same_bits(optimizer.state_dict(), plain_optimizer.state_dict(), "its state");
  }
  EXPECT_EQ(sharded.stats().memory_format, plain.stats().memory_format);
  EXPECT_EQ(sharded.stats().rebuilt, plain.stats().rebuilt);
}

TEST(ShardedStep, FollowsBucketsThatAreMadeAnew) {
  on_ranks(3, [](comm::Group& group) {
    expect_equal_training(
        group,
        UpsideDown(),
        UpsideDown(),
        {.first_bucket_bytes = 64, .bucket_cap_bytes = 1000, .shared_memory = false},
        [&](auto& wrapped, int step) {
          return wrapped(values({4, 3}, group.rank() + 10.0 * step)).square().sum();
        });
  });
}

struct PicturesNetImpl : torch::nn::Module {
  PicturesNetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(8));
    testing::fill(*this, 2);
  }
  torch::Tensor forward(const torch::Tensor& x) { return norm(conv(x)).relu().mean({2, 3}); }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
};
TORCH_MODULE(PicturesNet);

TEST(ShardedStep, FollowsTheMemoryFormat) {
  on_ranks(2, [](comm::Group& group) {
    expect_equal_training(
        group,
        PicturesNet(),
        PicturesNet(),
        {.shared_memory = false, .memory_format = engine::MemoryFormat::kAuto},
        [&](auto& wrapped, int step) {
          return wrapped(values({4, 3, 9, 9}, group.rank() + 3.0 * step, at::kFloat))
              .square()
              .sum();
        });
  });
}

/// A state that was loaded before the memory format was settled is in the order of before.
TEST(ShardedStep, AStateThatWasLoadedFollowsTheMemoryFormat) {
  on_ranks(2, [](comm::Group& group) {
    const DdpOptions options{.shared_memory = false, .memory_format = engine::MemoryFormat::kAuto};
    const auto train = [&](auto& model, optim::Optimizer& optimizer, int step) {
      model(values({4, 3, 9, 9}, group.rank() + 3.0 * step, at::kFloat)).square().sum().backward();
      optimizer.step();
      optimizer.zero_grad();
    };
    PicturesNet net;
    DistributedDataParallel<PicturesNet> plain(net, group, options);
    optim::Optimizer plain_optimizer = optim::Adam(plain, {.lr = 0.02});
    train(plain, plain_optimizer, 0);

    PicturesNet later;
    DistributedDataParallel<PicturesNet> sharded(later, group, options);
    optim::Optimizer optimizer = optim::Adam(sharded, {.lr = 0.02});
    ASSERT_TRUE(sharded.divide_step(optimizer, kScattered));
    optimizer.load_state_dict(plain_optimizer.state_dict());
    {
      const torch::NoGradGuard no_grad;
      for (size_t i = 0; i < net->parameters().size(); ++i) {
        later->parameters()[i].copy_(net->parameters()[i]);
      }
      for (size_t i = 0; i < net->buffers().size(); ++i) {
        later->buffers()[i].copy_(net->buffers()[i]);
      }
    }
    for (int step = 1; step < 3; ++step) {
      train(plain, plain_optimizer, step);
      train(sharded, optimizer, step);
    }
    EXPECT_EQ(sharded.stats().memory_format, "channels_last");
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      expect_same_bits(later->parameters()[i], net->parameters()[i], std::to_string(i));
    }
  });
}

TEST(ShardedStep, ParametersOfAllKinds) {
  on_ranks(5, [](comm::Group& group) {
    expect_equal_training(
        group, Mixed(), Mixed(), {.shared_memory = false}, [&](auto& wrapped, int step) {
          return wrapped(0.3 + 0.1 * group.rank() + step);
        });
  });
}

TEST(ShardedStep, AScalerSkipsForAllRanksWhatOneOfThemFinds) {
  on_ranks(3, [](comm::Group& group) {
    Trained sharded = scattered(group, all_optimizers()[2]);
    Trained plain(group, all_optimizers()[2], false, kHidden);
    for (Trained* each : {&sharded, &plain}) {
      optim::GradScaler scaler({.init_scale = 1024});
      std::vector<double> scales;
      for (int step = 0; step < 4; ++step) {
        at::Tensor loss = each->model(values({4, 3}, group.rank() + 10.0 * step)).square().sum();
        if (step == 1) {  // one element of one bias is not finite
          loss = loss + each->model.parameters()[1][4] * std::numeric_limits<double>::infinity();
        }
        scaler.scale(loss).backward();
        EXPECT_EQ(scaler.step(each->optimizer), step != 1);
        scaler.update();
        each->optimizer.zero_grad();
        scales.push_back(scaler.get_scale());
      }
      EXPECT_EQ(scales, (std::vector<double>{1024, 512, 512, 512}));
    }
    expect_same_bits(sharded.model, plain.model, "after a step that was left out");
  });
}

TEST(ShardedStep, VirtualRanksHaveTheSameBitsOnAnyNumberOfProcesses) {
  std::vector<at::Tensor> of_four;
  for (const int size : {4, 2, 3}) {
    on_ranks(size, [&](comm::Group& group) {
      TwoLayers net(0.5, kHidden);
      DistributedDataParallel<TwoLayers> model(
          net, group, {.first_bucket_bytes = 64, .shared_memory = false, .virtual_ranks = 4});
      optim::Optimizer optimizer =
          optim::Adam(model, {.lr = 0.02, .grad_clip = optim::ClipGradByGlobalNorm(0.1)});
      ASSERT_TRUE(model.divide_step(optimizer, kScattered));
      const IndexRange mine = even_part(4, size, group.rank());
      for (int64_t update = 0; update < 3; ++update) {
        for (int64_t leaf = 0; leaf < mine.size(); ++leaf) {
          model.begin({.leaf = leaf, .leaves = mine.size()});
          model(values({4, 3}, static_cast<double>(mine.begin + leaf + 10 * update)))
              .square()
              .sum()
              .backward();
        }
        model.end_update();
        optimizer.step();
        optimizer.zero_grad();
      }
      if (group.rank() == 0) {
        for (size_t i = 0; i < net->parameters().size(); ++i) {
          if (size == 4) {
            of_four.push_back(net->parameters()[i].detach().clone());
          } else {
            expect_same_bits(net->parameters()[i], of_four[i], std::to_string(size));
          }
        }
      }
    });
  }
}

TEST(ShardedStep, RefusesWhatItCannotDo) {
  on_ranks(2, [](comm::Group& group) {
    const DdpOptions options{.shared_memory = false};
    DistributedDataParallel<TwoHeads> model(TwoHeads(), group, options);
    optim::Optimizer trunk = optim::Adam(model->trunk, {.lr = 0.01});
    EXPECT_THAT(error_of([&] { (void)model.divide_step(trunk, kScattered); }),
                HasSubstr("the optimizer lacks parameter left.weight of the model"));
    optim::Optimizer all = optim::SGD(model, {.lr = 0.01});
    EXPECT_THAT(error_of([&] {
                  (void)model.divide_step(all,
                                          {.share_parameters = true, .scatter_gradients = true});
                }),
                HasSubstr("scatter_gradients excludes share_parameters"));
    ASSERT_TRUE(model.divide_step(all, kScattered));
  });
}

TEST(ShardedStep, EndsWithItsWrapper) {
  on_ranks(2, [](comm::Group& group) {
    TwoLayers net(0.5, kHidden);
    const DdpOptions options{.shared_memory = false};
    std::optional<DistributedDataParallel<TwoLayers>> model(std::in_place, net, group, options);
    optim::Optimizer optimizer = optim::Adam(*model, {.lr = 0.02});
    ASSERT_TRUE(model->divide_step(optimizer, kScattered));
    const auto train = [&](auto& wrapped, optim::Optimizer& each) {
      wrapped(values({4, 3}, group.rank())).sum().backward();
      each.step();
      each.zero_grad();
    };
    train(*model, optimizer);
    const at::Tensor before = net->first->weight.detach().clone();
    model.reset();
    expect_same_bits(net->first->weight, before, "weights stay");
    net(values({4, 3}, 1)).sum().backward();
    EXPECT_THAT(error_of([&] { optimizer.step(); }),
                HasSubstr("is gone, or has another optimizer"));
    EXPECT_THAT(error_of([&] { (void)optimizer.state_dict(); }), HasSubstr("Make a new one"));

    DistributedDataParallel<TwoLayers> again(net, group, options);
    optim::Optimizer fresh = optim::Adam(again, {.lr = 0.02});
    ASSERT_TRUE(again.divide_step(fresh, kScattered));
    train(again, fresh);
  });
}

TEST(ShardedStep, NamesAParameterThatWasMoved) {
  on_ranks(2, [](comm::Group& group) {
    Trained sharded = scattered(group, all_optimizers()[0]);
    sharded.backward(group, 0);
    at::Tensor weight = sharded.model.parameters()[0];
    {
      const torch::NoGradGuard no_grad;
      weight.set_data(weight.detach().clone());
    }
    EXPECT_THAT(error_of([&] { sharded.optimizer.step(); }),
                HasSubstr("parameter first.weight has been given other memory"));
  });
}

TEST(ShardedStep, IsNotNeededWhereRanksShareMemory) {
  on_ranks(2, [](comm::Group& group) {
    Trained one(group, all_optimizers()[0], /*shared=*/true, 37, kScattered);
    EXPECT_TRUE(one.divided);
    EXPECT_EQ(one.optimizer.impl()->sharded(), nullptr) << "gradients stay whole";
  });
}

}  // namespace
}  // namespace argosy::parallel
