/// The memory format of a wrapped model: what is chosen, that the results stay, that nothing else
/// moves.
#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/even_part.h"
#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using engine::MemoryFormat;
using testing::fill;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::values;

constexpr auto kLast = at::MemoryFormat::ChannelsLast;
constexpr auto kF32 = at::kFloat;

/// What a test wants to see or to go wrong inside of a forward.
struct Behaviour {
  bool view = false;       ///< `view` of an image, which wants row-major memory
  bool raw = false;        ///< reads raw memory in row-major order
  bool image_out = false;  ///< gives an image
  bool fails_in_eval = false;
  bool draws = false;   ///< random numbers and a write into a buffer, in evaluation mode too
  bool writes = false;  ///< into the images that it is given
  int64_t filters = 8;
};

struct ConvNetImpl : torch::nn::Module {
  explicit ConvNetImpl(Behaviour how = {}) : behaviour(how) {
    conv = register_module(
        "conv",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(3, how.filters, 3).padding(1).bias(false)));
    norm = register_module("norm", torch::nn::BatchNorm2d(how.filters));
    drop = register_module("drop", torch::nn::Dropout(0.5));
    fc = register_module("fc", torch::nn::Linear(how.filters * 4 * 4, 3));
    fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    ++forwards;
    seen = x;
    if (behaviour.fails_in_eval && !is_training()) {
      throw std::runtime_error("train only\nsecond line");
    }
    if (behaviour.draws) {
      const torch::NoGradGuard no_grad;
      norm->running_mean.add_(torch::rand({8}));
    }
    if (behaviour.writes) {
      const torch::NoGradGuard no_grad;
      seen.mul_(0.5);
    }
    torch::Tensor h = norm(conv(x)).relu();
    if (behaviour.image_out) {
      return h + fc(drop(h.flatten(1))).sum();
    }
    if (behaviour.raw) {
      h = torch::from_blob(h.data_ptr(), h.sizes(), kF32) * h.sum();
    }
    return fc(drop(behaviour.view ? h.view({-1, 8 * 4 * 4}) : h.flatten(1)));
  }
  Behaviour behaviour;
  int forwards = 0;
  torch::Tensor seen;
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ConvNet);

using Wrapped = DistributedDataParallel<ConvNet>;

ConvNet without_dropout(Behaviour how = {}) {
  ConvNet net(how);
  net->drop->options.p(0);
  return net;
}

torch::Tensor images(int rank, int step) {
  return values({2, 3, 4, 4}, 10.0 * step + rank, kF32);
}

void train(Wrapped& model, optim::Optimizer& optimizer, int rank, int step) {
  model(images(rank, step)).square().sum().backward();
  optimizer.step();
  optimizer.zero_grad();
}

void expect_close(const Wrapped& a, const Wrapped& b) {
  const auto x = a.parameters();
  const auto y = b.parameters();
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(torch::allclose(x[i], y[i], 1e-3, 1e-4)) << "parameter " << i << x[i] << y[i];
  }
}

TEST(MemoryFormatChoice, AutoTakesChannelsLastAndTrainsTheSame) {
  for (const int size : {1, 3}) {
    for (const bool divided : {false, true}) {
      on_ranks(size, [&](comm::Group& group) {
        Wrapped model(without_dropout(), group, {.memory_format = MemoryFormat::kAuto});
        Wrapped plain(without_dropout(), group);
        optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.02});
        optim::Optimizer plain_optimizer = optim::SGD(plain, {.lr = 0.02});
        if (divided) {
          EXPECT_EQ(model.divide_step(optimizer), size > 1);
        }
        EXPECT_EQ(model.stats().memory_format, "auto");
        for (int step = 0; step < 4; ++step) {
          train(model, optimizer, group.rank(), step);
          train(plain, plain_optimizer, group.rank(), step);
        }
        EXPECT_EQ(model.stats().memory_format, "channels_last");
        EXPECT_EQ(model.stats().memory_format_reason, "1 convolution");
        EXPECT_EQ(plain.stats().memory_format, "as_is");
        EXPECT_TRUE(model->conv->weight.is_contiguous(kLast));
        EXPECT_TRUE(model->seen.is_contiguous(kLast));
        EXPECT_TRUE(plain->seen.is_contiguous());
        expect_close(model, plain);
        model(images(group.rank(), 5)).sum().backward();
        EXPECT_TRUE(model->conv->weight.grad().is_contiguous(kLast));
      });
    }
  }
}

TEST(MemoryFormatChoice, IsASparesTooWhichTriesNothing) {
  for (const bool view : {false, true}) {
    on_ranks(3, [&](comm::Group& group) {
      Wrapped model(without_dropout({.view = view}),
                    group,
                    {.memory_format = MemoryFormat::kAuto, .virtual_ranks = 2});
      if (group.rank() < 2) {
        model.begin({});
        model(images(group.rank(), 0)).square().sum().backward();
      }
      model.end_update();
      EXPECT_EQ(model.stats().memory_format, view ? "as_is" : "channels_last");
      EXPECT_EQ(model->conv->weight.is_contiguous(kLast), !view);
      EXPECT_EQ(model->conv->weight.grad().is_contiguous(kLast), !view);
      EXPECT_GT(model->conv->weight.grad().abs().sum().item<double>(), 0);
    });
  }
}

// Else the sums of earlier virtual ranks would be in another order than those of later ones.
TEST(MemoryFormatChoice, ABackwardInEvaluationModeBeforeTheFirstTrainingForwardSettlesIt) {
  std::vector<torch::Tensor> expected;
  std::mutex mutex;
  for (const int processes : {3, 1, 2, 4}) {
    on_ranks(processes, [&](comm::Group& group) {
      Wrapped model(
          without_dropout(), group, {.memory_format = MemoryFormat::kAuto, .virtual_ranks = 3});
      const IndexRange mine = even_part(3, group.size(), group.rank());
      for (int64_t leaf = 0; leaf < mine.size(); ++leaf) {
        const torch::Tensor x = images(static_cast<int>(mine.begin + leaf), 0);
        model.begin({.leaf = leaf, .leaves = mine.size()});
        model.eval();
        model(x * 0.5).square().sum().backward();
        model.train();
        model(x).square().sum().backward();
        EXPECT_EQ(model.stats().memory_format, "as_is");
        EXPECT_THAT(model.stats().memory_format_reason, HasSubstr("backward in evaluation mode"));
      }
      model.end_update();
      const std::lock_guard lock(mutex);
      for (size_t i = 0; const torch::Tensor& parameter : model.parameters()) {
        if (expected.size() <= i) {
          expected.push_back(parameter.grad().clone());
        }
        EXPECT_TRUE(parameter.grad().equal(expected[i++])) << processes << " processes";
      }
    });
  }
}

/// The weights of two networks whose passes alternate, after some updates. All ranks have the same.
/// `share`: the ranks have the parameters in common, and divide the steps.
std::vector<torch::Tensor> two_trained(int processes,
                                       int64_t virtual_ranks,
                                       int64_t micros,
                                       bool share = false) {
  std::vector<torch::Tensor> result;
  std::mutex mutex;
  on_ranks(processes, [&](comm::Group& group) {
    const DdpOptions options{.first_bucket_bytes = 1,
                             .bucket_cap_bytes = 1,
                             .memory_format = MemoryFormat::kAuto,
                             .virtual_ranks = virtual_ranks};
    Wrapped one(without_dropout({.filters = 5}), group, options);
    Wrapped other(without_dropout({.filters = 7}), group, options);
    optim::SGD one_optimizer(one, {.lr = 0.01});
    optim::SGD other_optimizer(other, {.lr = 0.01});
    if (share && processes > 1) {
      EXPECT_TRUE(one.divide_step(one_optimizer, {.share_parameters = true}));
      EXPECT_TRUE(other.divide_step(other_optimizer, {.share_parameters = true}));
    }
    const IndexRange mine = even_part(virtual_ranks, processes, group.rank());
    for (int update = 0; update < 3; ++update) {
      for (int64_t leaf = 0; leaf < mine.size(); ++leaf) {
        for (int64_t micro = 0; micro < micros; ++micro) {
          for (Wrapped* const each : {&one, &other}) {
            each->begin({.leaf = leaf, .leaves = mine.size(), .micro = micro, .micros = micros});
          }
          const torch::Tensor x = images(static_cast<int>(mine.begin + leaf), update);
          one(x).square().sum().backward();
          other(x * 0.5).square().sum().backward();
        }
      }
      for (Wrapped* const each : {&one, &other}) {
        each->end_update();
      }
      for (optim::SGD* const each : {&one_optimizer, &other_optimizer}) {
        each->step();
        each->zero_grad();
      }
    }
    EXPECT_EQ(one.stats().memory_format, "channels_last");
    EXPECT_EQ(other.stats().memory_format, "channels_last");
    EXPECT_TRUE(one.stats().rebuilt && other.stats().rebuilt);
    if (share && processes > 1) {  // the ranks are threads
      const std::string place = fmt::format("{}", other->conv->weight.data_ptr());
      EXPECT_THAT(comm::all_gather_object(place, group), ::testing::Each(place));
    }
    std::vector<torch::Tensor> weights;
    for (const Wrapped* const each : {&one, &other}) {
      for (const torch::Tensor& parameter : each->parameters()) {
        weights.push_back(parameter.detach().clone());
      }
    }
    const std::lock_guard lock(mutex);
    result = result.empty() ? weights : result;
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_TRUE(weights[i].equal(result[i])) << i << " of rank " << group.rank();
    }
  });
  return result;
}

// Relaid weights are no changed weights, and nobody waits in one network's first pass for who is in
// the other's.
TEST(MemoryFormatChoice, OfTwoNetworksIsTheSameOnAnyNumberOfProcesses) {
  for (const int64_t micros : {1, 2}) {
    for (const int virtual_ranks : {3, 6}) {
      const auto expected = two_trained(virtual_ranks, virtual_ranks, micros);
      for (const int processes : {1, 2, 4, 5, 7}) {
        const auto got = two_trained(processes, virtual_ranks, micros);
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_TRUE(got[i].equal(expected[i]))
              << i << ", " << virtual_ranks << " virtual ranks of " << micros << " on "
              << processes;
        }
      }
    }
  }
}

TEST(MemoryFormatChoice, OfTwoNetworksThatShareParametersIsTheSameOnAnyNumberOfProcesses) {
  const auto expected = two_trained(1, 3, 1);
  for (const int processes : {2, 3, 4}) {
    const auto got = two_trained(processes, 3, 1, true);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(got[i].equal(expected[i])) << i << " on " << processes << " processes";
    }
  }
}

TEST(MemoryFormatChoice, OfTwoNetworksThatDiffersBetweenProcessesIsNamed) {
  on_ranks(2, [](comm::Group& group) {
    const DdpOptions options{.memory_format = MemoryFormat::kAuto, .virtual_ranks = 3};
    Wrapped one(without_dropout({.view = group.rank() == 0}), group, options);
    const Wrapped other(without_dropout(), group, options);
    const int64_t leaves = group.rank() == 0 ? 2 : 1;
    EXPECT_THAT(testing::error_of<CommError>([&] {
                  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
                    one.begin({.leaf = leaf, .leaves = leaves});
                    one(images(0, 0)).sum().backward();
                  }
                }),
                HasSubstr("hold their parameters in different memory formats"));
  });
}

TEST(MemoryFormatChoice, AskedForItIsThereFromTheStart) {
  on_ranks(2, [](comm::Group& group) {
    Wrapped model(ConvNet(), group, {.memory_format = MemoryFormat::kChannelsLast});
    EXPECT_TRUE(model->conv->weight.is_contiguous(kLast));
    EXPECT_EQ(model.stats().memory_format, "channels_last");
    torch::NoGradGuard no_grad;
    (void)model(images(0, 0));
    EXPECT_TRUE(model->seen.is_contiguous(kLast));
    ConvNet net;
    engine::lay_out(*net, MemoryFormat::kChannelsLast);
    Wrapped back(net, group, {.memory_format = MemoryFormat::kContiguous});
    EXPECT_TRUE(net->conv->weight.is_contiguous());
    (void)back(images(0, 0).contiguous(kLast));
    EXPECT_TRUE(back->seen.is_contiguous());
    EXPECT_EQ(model->forwards, 1);
  });
}

TEST(MemoryFormatChoice, AModelThatReadsMemoryRowByRowStaysAsItIs) {
  const std::vector<std::pair<Behaviour, std::string>> cases = {
      {{.view = true}, "it fails then: view size is not compatible"},
      {{.raw = true}, "its output differs then by"},
      {{.image_out = true}, "its output is an image"},
      {{.fails_in_eval = true}, "its forward fails in evaluation mode: train only"}};
  for (const auto& [behaviour, reason] : cases) {
    for (const int size : {1, 2}) {
      on_ranks(size, [&, how = behaviour, why = reason](comm::Group& group) {
        Wrapped model(without_dropout(how), group, {.memory_format = MemoryFormat::kAuto});
        const at::Tensor before = model->conv->weight.detach().clone();
        model(images(group.rank(), 0)).square().sum().backward();
        EXPECT_EQ(model.stats().memory_format, "as_is");
        EXPECT_THAT(model.stats().memory_format_reason, HasSubstr(why));
        EXPECT_TRUE(model->conv->weight.is_contiguous());
        EXPECT_TRUE(torch::equal(model->conv->weight, before));
        EXPECT_TRUE(model->seen.is_contiguous());
        EXPECT_TRUE(model->is_training() && model->drop->is_training());
      });
    }
  }
}

TEST(MemoryFormatChoice, WhatOneRankCannotDoNoneDoes) {
  on_ranks(3, [](comm::Group& group) {
    Wrapped model(without_dropout({.view = group.rank() == 1}),
                  group,
                  {.memory_format = MemoryFormat::kAuto});
    optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.02});
    train(model, optimizer, group.rank(), 0);
    EXPECT_EQ(model.stats().memory_format, "as_is");
    EXPECT_THAT(model.stats().memory_format_reason,
                HasSubstr(group.rank() == 1 ? "it fails then" : "on rank 1 it fails then"));
    EXPECT_TRUE(model->conv->weight.is_contiguous());
  });
}

/// Forward with dropout and batch norm: random numbers, running statistics, modes of layers.
TEST(MemoryFormatChoice, TheTrialLeavesNoTrace) {
  const auto run = [](const comm::Group& group, MemoryFormat format) {
    torch::manual_seed(7);
    ConvNet net(Behaviour{.image_out = true, .draws = true});  // tried, and refused
    Wrapped model(net, group, {.memory_format = format});
    net->norm->eval();  // frozen statistics, as fine-tuning has them
    const at::Tensor mine = images(0, 0);
    const at::Tensor given = mine.clone();
    model(mine).sum().backward();
    EXPECT_TRUE(torch::equal(mine, given));
    EXPECT_FALSE(net->norm->is_training());
    EXPECT_TRUE(net->drop->is_training());
    return std::pair(torch::rand({4}), net->norm->running_mean.clone());
  };
  on_ranks(1, [&](comm::Group& group) {
    const auto [random, mean] = run(group, MemoryFormat::kAuto);
    const auto [plain_random, plain_mean] = run(group, MemoryFormat::kAsIs);
    EXPECT_TRUE(torch::equal(random, plain_random));
    EXPECT_TRUE(torch::equal(mean, plain_mean));
  });
}

/// Who else holds a weight's memory differs from rank to rank; the order of elements must not.
TEST(MemoryFormatChoice, AnAliasOnOneRankIsAnObstacleForAll) {
  for (const bool before_wrapping : {true, false}) {
    on_ranks(3, [&](comm::Group& group) {
      ConvNet net = without_dropout();
      torch::Tensor alias;
      const auto hold = [&](bool now) {
        if (now && group.rank() == 1) {
          alias = net->conv->weight.detach();
        }
      };
      hold(before_wrapping);
      Wrapped model(net, group, {.memory_format = MemoryFormat::kAuto});
      hold(!before_wrapping);
      optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.02});
      train(model, optimizer, group.rank(), 0);
      EXPECT_EQ(model.stats().memory_format, "as_is");
      EXPECT_THAT(model.stats().memory_format_reason, HasSubstr("shares its memory"));
      EXPECT_TRUE(net->conv->weight.is_contiguous());
    });
  }
}

TEST(MemoryFormatChoice, AForwardThatWritesIntoItsImagesKeepsThem) {
  on_ranks(1, [](comm::Group& group) {
    Wrapped model(without_dropout({.writes = true}), group, {.memory_format = MemoryFormat::kAuto});
    const torch::Tensor mine = images(0, 0);
    const torch::Tensor given = mine.clone();
    model(mine).sum().backward();
    EXPECT_EQ(model.stats().memory_format, "as_is");
    EXPECT_THAT(model.stats().memory_format_reason, HasSubstr("writes into an image"));
    EXPECT_TRUE(torch::equal(mine, given * 0.5));  // once, not three times
  });
}

TEST(MemoryFormatChoice, WhatWasGatheredBeforeStays) {
  on_ranks(2, [](comm::Group& group) {
    const auto gradients = [&](MemoryFormat format, bool zeroed) {
      Wrapped model(without_dropout(), group, {.memory_format = format});
      optim::Optimizer optimizer = optim::Adam(model, {.lr = 0.01});
      EXPECT_TRUE(model.divide_step(optimizer));
      if (zeroed) {
        auto local = model.no_sync();
        model(images(group.rank(), 1)).square().sum().backward();
        optimizer.zero_grad();
      }
      for (int step = 0; step < 2; ++step) {
        auto local = model.no_sync();
        model(images(group.rank(), step)).square().sum().backward();
      }
      EXPECT_NE(model.stats().memory_format, "channels_last");
      model(images(group.rank(), 3)).square().sum().backward();
      return model.module()->conv->weight.grad().clone();
    };
    for (const bool zeroed : {false, true}) {
      EXPECT_TRUE(torch::allclose(gradients(MemoryFormat::kAuto, zeroed),
                                  gradients(MemoryFormat::kAsIs, zeroed),
                                  1e-3,
                                  1e-4));
    }
  });
}

/// State of the optimizer from before the choice is in another order than the weights after it.
TEST(MemoryFormatChoice, StateFromBeforeFollows) {
  on_ranks(2, [](comm::Group& group) {
    const auto weights = [&](MemoryFormat format) {
      Wrapped model(without_dropout(), group, {.memory_format = format});
      optim::Optimizer optimizer = optim::Momentum(model, {.lr = 0.01});
      EXPECT_TRUE(model.divide_step(optimizer));
      {
        auto local = model.no_sync();
        model(images(0, 0)).square().sum().backward();  // the same on both ranks
      }
      optimizer.step();
      optimizer.zero_grad();
      for (int step = 1; step < 3; ++step) {
        train(model, optimizer, group.rank(), step);
      }
      return model->conv->weight.detach().clone();
    };
    EXPECT_TRUE(
        torch::allclose(weights(MemoryFormat::kAuto), weights(MemoryFormat::kAsIs), 1e-3, 1e-4));
  });
}

TEST(MemoryFormatChoice, EvaluationAndNoSyncDecideNothing) {
  on_ranks(2, [](comm::Group& group) {
    Wrapped model(ConvNet(), group, {.memory_format = MemoryFormat::kAuto});
    {
      torch::NoGradGuard no_grad;
      (void)model(images(0, 0));
    }
    model.eval();
    (void)model(images(0, 0));
    model.train();
    EXPECT_EQ(model->forwards, 2);
    EXPECT_EQ(model.stats().memory_format, "auto");
    (void)model(images(0, 0));
    EXPECT_EQ(model->forwards, 5) << "two on the side and the training forward itself";
    EXPECT_EQ(model.stats().memory_format, "channels_last");
  });
}

TEST(MemoryFormatChoice, ARunThatGoesOnTakesTheFormatOfTheOneBefore) {
  on_ranks(2, [](comm::Group& group) {
    Wrapped model(ConvNet(), group, {.memory_format = MemoryFormat::kAuto});
    EXPECT_EQ(model.memory_format(), MemoryFormat::kAuto);
    model.decide_memory_format(MemoryFormat::kChannelsLast);
    EXPECT_EQ(model.memory_format(), MemoryFormat::kChannelsLast);
    (void)model(images(0, 0));
    EXPECT_EQ(model->forwards, 1) << "nothing is tried";
    model.decide_memory_format(MemoryFormat::kAsIs);
    EXPECT_EQ(model.memory_format(), MemoryFormat::kChannelsLast) << "decided is decided";
  });
}

TEST(MemoryFormatChoice, AJoinBeforeTheFirstForwardLeavesTheModelAsItIs) {
  on_ranks(2, [](comm::Group& group) {
    Wrapped model(without_dropout(), group, {.memory_format = MemoryFormat::kAuto});
    auto join = model.join();
    if (group.rank() == 0) {
      model(images(0, 0)).square().sum().backward();
    }
    join.finish();
    EXPECT_EQ(model.stats().memory_format, "as_is");
    EXPECT_THAT(model.stats().memory_format_reason, HasSubstr("join"));
  });
}

TEST(MemoryFormatChoice, RanksMustAskForTheSame) {
  on_ranks(2, [](comm::Group& group) {
    const DdpOptions options = {.memory_format =
                                    group.rank() == 0 ? MemoryFormat::kAuto : MemoryFormat::kAsIs};
    EXPECT_THAT(testing::error_of([&] { Wrapped(ConvNet(), group, options); }),
                HasSubstr("option memory_format as_is, rank 0: auto"));
  });
}

/// Arguments of every kind: what holds images is converted, the rest passes, references stay.
struct ManyInputsImpl : torch::nn::Module {
  ManyInputsImpl() {
    conv = register_module("conv", torch::nn::Conv2d(3, 2, 3));
    fill(*this, 1);
  }
  torch::Tensor forward(torch::Tensor& state,
                        const std::vector<torch::Tensor>& list,
                        std::optional<torch::Tensor> maybe,
                        const std::string& text,
                        std::unique_ptr<int> number) {
    all_last = list.at(0).is_contiguous(kLast) && maybe.value().is_contiguous(kLast);
    state = state + *number + static_cast<double>(text.size());
    return conv(list.at(0)).sum() + conv(*maybe).sum() + state.sum();
  }
  bool all_last = false;
  torch::nn::Conv2d conv{nullptr};
};
TORCH_MODULE(ManyInputs);

TEST(MemoryFormatChoice, ArgumentsKeepTheirKind) {
  on_ranks(1, [](comm::Group& group) {
    for (const MemoryFormat format : {MemoryFormat::kChannelsLast, MemoryFormat::kAuto}) {
      DistributedDataParallel<ManyInputs> model(ManyInputs(), group, {.memory_format = format});
      at::Tensor state = torch::zeros({1, 3, 2, 2});
      const std::vector<at::Tensor> list = {images(0, 0)};
      model(state, list, std::optional<at::Tensor>(images(0, 1)), "four", std::make_unique<int>(2));
      EXPECT_EQ(state.sum().item<double>(), 12 * 6);
      EXPECT_TRUE(list[0].is_contiguous());
      if (format == MemoryFormat::kAuto) {
        EXPECT_THAT(model.stats().memory_format_reason, HasSubstr("cannot be copied"));
      } else {
        EXPECT_TRUE(model->all_last);
      }
    }
  });
}

}  // namespace
}  // namespace argosy::parallel
