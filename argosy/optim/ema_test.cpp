#include "argosy/optim/ema.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"

#include "tests/support/error_text.h"

namespace argosy::optim {
namespace {

using engine::NamedTensors;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("fc", fc);
    register_module("norm", norm);
  }
  torch::nn::Linear fc{3, 2};
  torch::nn::BatchNorm1d norm{2};
};
TORCH_MODULE(Net);

void fill(Net& net, double value) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& tensor : net->parameters()) {
    tensor.fill_(value);
  }
  net->norm->running_mean.fill_(value);
  net->norm->num_batches_tracked.fill_(static_cast<int64_t>(value));
}

TEST(ExponentialMovingAverage, TheFirstUpdateIsTheWeights) {
  Net net;
  ExponentialMovingAverage ema(net, {.decay = 0.75});
  fill(net, 4);
  ema.update();
  EXPECT_EQ(ema.state_dict().averages.at("fc.weight")[0][0].item<double>(), 4);
  fill(net, 8);
  ema.update();
  EXPECT_EQ(ema.state_dict().averages.at("fc.weight")[0][0].item<double>(), 5);
  EXPECT_EQ(ema.num_updates(), 2);
}

TEST(ExponentialMovingAverage, WarmupForgetsTheFirstWeightsSoon) {
  torch::Tensor w = torch::zeros({1}, torch::kDouble);
  ExponentialMovingAverage ema(NamedTensors{{"w", w}},
                               {.decay = 0.25, .warmup = EmaWarmup::kNumUpdates});
  double expected = 0;
  for (int n = 0; n < 6; ++n) {
    w.fill_(n * n);
    ema.update();
    const double decay = n == 0 ? 0 : std::min(0.25, (1.0 + n) / (10.0 + n));
    expected = decay * expected + (1 - decay) * n * n;
    EXPECT_NEAR(ema.state_dict().averages.at("w").item<double>(), expected, 1e-14) << n;
  }
}

TEST(ExponentialMovingAverage, TheModelHasItWhileTheScopeLasts) {
  Net net;
  ExponentialMovingAverage ema(net, {.decay = 0.75});
  fill(net, 4);
  ema.update();
  fill(net, 8);
  ema.update();
  const void* address = net->fc->weight.data_ptr();
  const auto value = [&] { return net->fc->weight[0][0].item<double>(); };
  {
    const Averaged weights(ema);
    EXPECT_EQ(value(), 5);
    EXPECT_EQ(net->norm->running_mean[0].item<double>(), 8) << "buffers stay the model's own";
    EXPECT_TRUE(ema.applied());
    EXPECT_THAT(
        test::error_text<UsageError>([&] { ema.update(); }),
        HasSubstr("[optim.ExponentialMovingAverage] update() while the average is applied"));
    EXPECT_THROW(ema.apply(), UsageError);
  }
  EXPECT_EQ(value(), 8);
  EXPECT_EQ(net->fc->weight.data_ptr(), address);
  ema.restore();
  EXPECT_EQ(value(), 8) << "nothing to restore";
  EXPECT_THROW(
      {
        const Averaged weights(ema);
        throw std::runtime_error("evaluation failed");
      },
      std::runtime_error);
  EXPECT_EQ(value(), 8) << "also after an exception";
}

TEST(ExponentialMovingAverage, AutogradSeesTheSwap) {
  torch::Tensor w = torch::ones({2}, torch::requires_grad());
  ExponentialMovingAverage ema(NamedTensors{{"w", w}});
  ema.update();
  const torch::Tensor loss = (w * w).sum();  // keeps w for backward
  const Averaged weights(ema);
  EXPECT_THROW(loss.backward(), c10::Error) << "w changed in place after it was saved";
}

TEST(ExponentialMovingAverage, BuffersCanBeAveragedToo) {
  Net net;
  ExponentialMovingAverage ema(net, {.decay = 0.75, .buffers = EmaBuffers::kAverage});
  fill(net, 4);
  ema.update();
  fill(net, 8);
  ema.update();
  const Averaged weights(ema);
  EXPECT_EQ(net->norm->running_mean[0].item<double>(), 5);
  EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 8) << "whole numbers are taken over";
}

TEST(ExponentialMovingAverage, TiedWeightsCountOnce) {
  torch::Tensor w = torch::ones({1});
  ExponentialMovingAverage ema(NamedTensors{{"embed", w}, {"head", w}});
  EXPECT_EQ(ema.state_dict().averages.size(), 1U);
}

TEST(ExponentialMovingAverage, ResumesWhereItStood) {
  torch::Tensor a = torch::zeros({3}), b = torch::zeros({3});
  const ExponentialMovingAverageOptions options{.decay = 0.5, .warmup = EmaWarmup::kNumUpdates};
  ExponentialMovingAverage straight(NamedTensors{{"w", a}}, options);
  const auto go = [](ExponentialMovingAverage& ema, torch::Tensor& w, int step) {
    w.fill_(step * step);
    ema.update();
  };
  for (int step = 0; step < 5; ++step) {
    go(straight, a, step);
  }
  ExponentialMovingAverage resumed(NamedTensors{{"w", b}}, options);
  const EmaState saved{straight.num_updates(), straight.state_dict().averages.clone()};
  resumed.load_state_dict(saved);
  for (int step = 5; step < 9; ++step) {
    go(straight, a, step);
    go(resumed, b, step);
  }
  EXPECT_TRUE(
      torch::equal(straight.state_dict().averages.at("w"), resumed.state_dict().averages.at("w")));
  EXPECT_FALSE(torch::equal(saved.averages.at("w"), resumed.state_dict().averages.at("w")))
      << "loading copies";
}

/// The tenth part of a last digit a step.
TEST(ExponentialMovingAverage, Of16BitWeightsDoesNotStandStill) {
  torch::Tensor w = torch::ones({1}, torch::kBFloat16);
  ExponentialMovingAverage ema(NamedTensors{{"w", w}}, {.decay = 0.999});
  ema.update();
  w.fill_(2);
  for (int n = 0; n < 200; ++n) {
    ema.update();
  }
  const double expected = 2 - std::pow(0.999, 200);
  EXPECT_NEAR(ema.state_dict().averages.at("w").item<double>(), expected, 1e-5);
  ema.apply();
  EXPECT_EQ(w.scalar_type(), torch::kBFloat16);
  EXPECT_NEAR(w.item<double>(), expected, 0.004);
  ema.restore();
  EXPECT_EQ(w.item<double>(), 2);

  ExponentialMovingAverage other(NamedTensors{{"w", w}}, {.decay = 0.999});
  other.load_state_dict(ema.state_dict());
  other.update();
  ema.update();
  EXPECT_EQ(other.state_dict().averages.at("w").item<double>(),
            ema.state_dict().averages.at("w").item<double>());
}

TEST(ExponentialMovingAverage, MistakesAreNamed) {
  torch::Tensor w = torch::ones({3});
  const NamedTensors list{{"w", w}};
  EXPECT_THAT(test::error_text<UsageError>([&] { ExponentialMovingAverage(list, {.decay = 2}); }),
              HasSubstr("decay must be in [0, 1], got 2"));
  EXPECT_THROW(ExponentialMovingAverage(NamedTensors{}), UsageError);
  ExponentialMovingAverage ema(list);
  EXPECT_THAT(test::error_text<UsageError>([&] { ema.apply(); }),
              HasSubstr("before the first update()"));
  EmaState wrong{1, {{"w", torch::ones({2})}, {"v", torch::ones({3})}}};
  EXPECT_THAT(test::error_text<CheckpointError>([&] { ema.load_state_dict(wrong); }),
              AllOf(HasSubstr("w (missing, or not [3])"), HasSubstr("v (unexpected)")));
  EXPECT_EQ(ema.num_updates(), 0);
}

}  // namespace
}  // namespace argosy::optim
