#include <signal.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using ::testing::AllOf;
using testing::error_of;
using testing::fill;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::TwoHeads;
using testing::TwoLayers;
using testing::values;

struct Recipe {
  std::string name{};
  std::function<optim::Optimizer(const DistributedDataParallel<TwoLayers>&)> make{};
};

std::vector<Recipe> recipes() {
  return {{"Adam", [](const auto& model) { return optim::Adam(model, {.lr = 0.02}); }},
          {"AdamW of two groups, clipped",
           [](const auto& model) {
             return optim::AdamW(
                 model,
                 {.lr = 0.03, .amsgrad = true, .grad_clip = optim::ClipGradByGlobalNorm(0.1)},
                 {{.names = {"*.bias"}, .lr_scale = 3, .weight_decay = 0.0}});
           }},
          {"Momentum",
           [](const auto& model) { return optim::Momentum(model, {.lr = 0.1, .nesterov = true}); }},
          {"SGD, which has no state",
           [](const auto& model) { return optim::SGD(model, {.lr = 0.1}); }}};
}

void expect_same_bits(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  EXPECT_EQ(std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()), 0) << what << ": " << x << y;
}

void expect_same_bits(const DistributedDataParallel<TwoLayers>& a,
                      const DistributedDataParallel<TwoLayers>& b,
                      const std::string& what) {
  const std::vector<at::Tensor> x = a.parameters();
  const std::vector<at::Tensor> y = b.parameters();
  for (size_t i = 0; i < x.size(); ++i) {
    expect_same_bits(x[i], y[i], what + ", parameter " + std::to_string(i));
  }
}

void expect_same_bits(const optim::OptimizerState& a,
                      const optim::OptimizerState& b,
                      const std::string& what) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size()) << what;
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    for (const auto& [name, tensor] : a.parameters[i].second) {
      expect_same_bits(tensor, b.parameters[i].second.at(name), what + ", state " + name);
    }
  }
}

/// A model and its optimizer, with divided steps or without.
struct Trained {
  DistributedDataParallel<TwoLayers> model;
  optim::Optimizer optimizer;
  bool divided;

  Trained(const comm::Group& group, const Recipe& recipe, bool shared, int64_t hidden = 37)
      : model(TwoLayers(0.5, hidden), group, {.shared_memory = shared}),
        optimizer(recipe.make(model)),
        divided(model.divide_step(optimizer)) {}

  void backward(const comm::Group& group, int step) {
    model(values({4, 3}, group.rank() + 10.0 * step)).square().sum().backward();
  }
  void step(const comm::Group& group, int step) {
    backward(group, step);
    optimizer.step();
    optimizer.zero_grad();
  }
};

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
    for (int step = 0; step < 3; ++step) {
      first.step(group, step);
    }
    const optim::OptimizerState state = first.optimizer.state_dict().clone();
    Trained second(group, recipes()[1], true);
    second.step(group, 7);  // state of its own, which goes
    {
      torch::NoGradGuard no_grad;
      const auto from = first.model.parameters();
      auto to = second.model.parameters();
      for (size_t i = 0; i < from.size(); ++i) {
        to[i].copy_(from[i]);
      }
    }
    second.optimizer.load_state_dict(state);
    expect_same_bits(second.optimizer.state_dict(), state, "loaded");
    for (int step = 3; step < 6; ++step) {
      first.step(group, step);
      second.step(group, step);
    }
    expect_same_bits(first.model, second.model, "after three more steps");
    expect_same_bits(first.optimizer.state_dict(), second.optimizer.state_dict(), "its state");
  });
}

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
    for (Trained* each : {&divided, &plain}) {
      each->step(group, 0);
      auto join = each->model.join();
      for (int step = 1; step < 3 + group.rank(); ++step) {
        each->step(group, step);
      }
      join.finish();
    }
    expect_same_bits(divided.model, plain.model, "after the join");
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
                AllOf(HasSubstr("another step than rank"), HasSubstr(".divide_update = false")));
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
    EXPECT_THAT(error_of([&] { each.optimizer.step(); }), HasSubstr("another step than rank"));
  });
}

/// Types, sizes and layouts side by side, of which some leave a rank without a share.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    const auto add = [&](const char* name, const at::Tensor& tensor) {
      return register_parameter(name, tensor);
    };
    scalar = add("scalar", values({}, 1, at::kFloat));
    wide = add("wide", values({300}, 2, at::kDouble));
    empty = add("empty", at::empty({0}, at::kFloat));
    image = add("image",
                values({4, 3, 5, 5}, 3, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast));
    transposed = add("transposed", values({7, 9}, 4, at::kFloat).t());
  }
  torch::Tensor forward(double x) {
    return scalar.square() * x + (wide * x).sin().sum().to(at::kFloat) + empty.sum() +
           (image * x).cos().sum() + (transposed * x).sin().sum();
  }
  torch::Tensor scalar, wide, empty, image, transposed;
};
TORCH_MODULE(Mixed);

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

TEST(DividedStep, ARankThatMakesAnotherStepIsNamed) {
  on_ranks(3, [](comm::Group& group) {
    Trained each(group, recipes()[0], true);
    each.step(group, 0);
    const at::Tensor before = each.model.parameters()[0].detach().clone();
    if (group.rank() == 1) {
      each.optimizer.set_lr(0.5);
    }
    each.backward(group, 1);
    const std::string error = error_of([&] { each.optimizer.step(); });
    EXPECT_THAT(error, HasSubstr("is about to make another step than rank"));
    EXPECT_THAT(error, HasSubstr(group.rank() == 1 ? "rank 0" : "rank 1"));
    expect_same_bits(before, each.model.parameters()[0], "nothing has changed");
    each.optimizer.set_lr(0.02);
    each.optimizer.step();
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

comm::Group process_group(const test::TempDir& folder, int rank, int size) {
  return comm::connect({.backend = "shm",
                        .store = rendezvous::file_store((folder.path() / "store").string()),
                        .rank = rank,
                        .size = size,
                        .timeout = std::chrono::seconds(20)});
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
