// Optimizers that compare norms of whole parameters, and which parameters decay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"
#include "argosy/optim/optim_test_problem.h"

#include "tests/support/error_text.h"

namespace argosy::optim {
namespace {

using engine::NamedTensors;
using testing::clone;
using ::testing::HasSubstr;
using testing::make_parameters;
using testing::same_bits;
using testing::set_gradients;

std::vector<Optimizer> both(const NamedTensors& list) {
  return {Lamb(list, {.lr = 0.01}), Lars(list, {.lr = 0.1})};
}

// "big" has several pieces, whose sums must be added in one order.
TEST(WholeParameter, SameBitsWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  for (int which = 0; which < 2; ++which) {
    const NamedTensors one = make_parameters(torch::kFloat), two = clone(one);
    Optimizer first = both(one)[which], second = both(two)[which];
    for (int step = 0; step < 5; ++step) {
      set_gradients(one, step);
      set_gradients(two, step);
      at::set_num_threads(1);
      first.step();
      at::set_num_threads(3);
      second.step();
    }
    EXPECT_TRUE(same_bits(one, two));
  }
  at::set_num_threads(before);
}

// A parameter of 90,300 elements against the formula in tensors of f64.
TEST(WholeParameter, LambsRatioIsOfTheWholeParameter) {
  const NamedTensors list = make_parameters(torch::kDouble);
  const torch::Tensor big = list[5].second;
  torch::Tensor w = big.detach().clone(), m = torch::zeros_like(w), v = torch::zeros_like(w);
  Lamb lamb(list, {.lr = 0.01});
  for (int step = 1; step <= 3; ++step) {
    set_gradients(list, step);
    const torch::Tensor g = big.grad();
    m = 0.9 * m + (1 - 0.9) * g;
    v = 0.999 * v + (1 - 0.999) * g * g;
    const torch::Tensor r =
        m / (1 - std::pow(0.9, step)) / ((v / (1 - std::pow(0.999, step))).sqrt() + 1e-6) +
        0.01 * w;
    w = w - 0.01 * (w.norm() / r.norm()) * r;
    lamb.step();
  }
  EXPECT_LT((big.detach() - w).abs().max().item<double>(), 1e-13);
}

TEST(WholeParameter, AZeroParameterMovesByThePlainRate) {
  torch::Tensor a = torch::zeros({3}, torch::requires_grad()), b = torch::zeros_like(a);
  b.requires_grad_(true);
  Lamb lamb(NamedTensors{{"a", a}}, {.lr = 0.5});
  Lars lars(NamedTensors{{"b", b}}, {.lr = 0.5});
  a.mutable_grad() = torch::ones({3});
  b.mutable_grad() = torch::ones({3});
  lamb.step();
  lars.step();
  EXPECT_NEAR(a[0].item<double>(), -0.5, 1e-5);
  EXPECT_EQ(b[0].item<double>(), -0.5);
}

struct Division final : StepDivision {
  [[nodiscard]] Part part_of(const at::Tensor&) const override { return {}; }
  [[nodiscard]] at::Tensor state_of(const at::Tensor&, std::size_t) const override { return {}; }
  void begin(uint64_t, const InWords&) override {}
  void hand_out(const void*, std::size_t) const noexcept override {}
  void end() override {}
  void leave() noexcept override {}
};

TEST(WholeParameter, StepsAreNotDividedButMayBeMadeEarly) {
  const NamedTensors list = make_parameters(torch::kFloat), early = clone(list);
  for (int which = 0; which < 2; ++which) {
    Optimizer optimizer = both(list)[which], ahead = both(early)[which];
    EXPECT_FALSE(optimizer.impl()->states_per_parameter().has_value());
    EXPECT_THAT(test::error_text<UsageError>(
                    [&] { optimizer.impl()->divide(std::make_shared<Division>()); }),
                HasSubstr("steps cannot be divided"));
    optimizer.impl()->divide(nullptr);
    ASSERT_TRUE(ahead.impl()->can_step_early()) << "each needs its own gradient only";
    set_gradients(list, 7);
    set_gradients(early, 7);
    optimizer.step();
    const std::vector<at::Tensor> some{early[5].second, early[1].second};
    ahead.impl()->step_early(some);
    ahead.step();
    EXPECT_TRUE(same_bits(list, early));
  }
  Adam divisible(list);
  EXPECT_EQ(divisible.impl()->states_per_parameter(), 2U);
}

TEST(Decay, TheFunctionDecidesByName) {
  const auto no_bias = [](const std::string& name) { return !name.ends_with("bias"); };
  torch::Tensor weight = torch::ones({2}, torch::requires_grad());
  torch::Tensor bias = torch::ones({2}, torch::requires_grad());
  torch::Tensor late = torch::ones({2}, torch::requires_grad());
  SGD sgd(NamedTensors{{"fc.weight", weight}, {"fc.bias", bias}},
          {.lr = 0.5, .weight_decay = 0.5, .apply_decay_param_fun = no_bias},
          {{.names = {"fc.bias"}, .weight_decay = L1Decay(1)}});
  sgd.add_param_group(NamedTensors{{"late.bias", late}});
  for (torch::Tensor* tensor : {&weight, &bias, &late}) {
    tensor->mutable_grad() = torch::zeros({2});
  }
  sgd.step();
  EXPECT_EQ(weight[0].item<double>(), 0.75);
  EXPECT_EQ(bias[0].item<double>(), 1) << "no decay, whatever its group says";
  EXPECT_EQ(late[0].item<double>(), 1);
}

TEST(Decay, EveryOptimizerHasTheFunction) {
  const auto none = [](const std::string&) { return false; };
  const auto moved = [&](const auto& make) {
    torch::Tensor w = torch::ones({2}, torch::requires_grad());
    w.mutable_grad() = torch::zeros({2});
    Optimizer optimizer = make(NamedTensors{{"w", w}});
    optimizer.step();
    return w[0].item<double>() != 1;
  };
  using List = NamedTensors;
  for (const DecayFilter& filter : {DecayFilter(), DecayFilter(none)}) {
    const bool decays = filter == nullptr;
    const auto sgd = [&](const List& list) {
      return SGD(list, {.weight_decay = 0.5, .apply_decay_param_fun = filter});
    };
    const auto momentum = [&](const List& list) {
      return Momentum(list, {.weight_decay = 0.5, .apply_decay_param_fun = filter});
    };
    const auto adam = [&](const List& list) {
      return Adam(list, {.weight_decay = 0.5, .apply_decay_param_fun = filter});
    };
    const auto adamw = [&](const List& list) {
      return AdamW(list, {.weight_decay = 0.5, .apply_decay_param_fun = filter});
    };
    const auto rmsprop = [&](const List& list) {
      return RMSProp(list, {.weight_decay = 0.5, .apply_decay_param_fun = filter});
    };
    const auto adagrad = [&](const List& list) {
      return Adagrad(list, {.weight_decay = 0.5, .apply_decay_param_fun = filter});
    };
    EXPECT_EQ(moved(sgd), decays);
    EXPECT_EQ(moved(momentum), decays);
    EXPECT_EQ(moved(adam), decays);
    EXPECT_EQ(moved(adamw), decays);
    EXPECT_EQ(moved(rmsprop), decays);
    EXPECT_EQ(moved(adagrad), decays);
  }
}

TEST(Decay, AParametersRegularizerTakesThePlaceOfTheOptimizers) {
  torch::Tensor own = torch::full({2}, 2.0, torch::requires_grad());
  torch::Tensor common = torch::full({2}, 2.0, torch::requires_grad());
  SGD sgd(NamedTensors{{"own", own}, {"common", common}},
          {.lr = 1, .weight_decay = L2Decay(0.25)},
          {{.names = {"own"}, .weight_decay = L1Decay(0.5)}});
  own.mutable_grad() = torch::zeros({2});
  common.mutable_grad() = torch::zeros({2});
  sgd.step();
  EXPECT_EQ(own[0].item<double>(), 1.5) << "not 1: the optimizer's is not added";
  EXPECT_EQ(common[0].item<double>(), 1.5);
  torch::Tensor bare = torch::ones({2}, torch::requires_grad());
  Lamb lamb(NamedTensors{{"own", own}, {"bare", bare}},
            {.lr = 1, .weight_decay = 0.5},
            {{.names = {"bare"}, .weight_decay = 0.0}});
  own.mutable_grad() = torch::zeros({2});
  bare.mutable_grad() = torch::zeros({2});
  lamb.step();
  EXPECT_NE(own[0].item<double>(), 1.5);
  EXPECT_EQ(bare[0].item<double>(), 1);
}

TEST(Decay, LambAndLarsTakeNumbersOnly) {
  const NamedTensors list{{"w", torch::ones({1}, torch::requires_grad())}};
  const std::vector<ParamGroup> l1{{.names = {"w"}, .weight_decay = L1Decay(1)}};
  EXPECT_THAT(test::error_text<UsageError>([&] { Lamb(list, {}, l1); }),
              HasSubstr("[optim.Lamb] weight_decay must be a number"));
  EXPECT_THAT(test::error_text<UsageError>([&] { Lars(list, {}, l1); }),
              HasSubstr("[optim.Lars] weight_decay must be a number"));
}

TEST(Options, OutOfRangeAreNamed) {
  const NamedTensors list{{"w", torch::ones({1}, torch::requires_grad())}};
  EXPECT_THAT(test::error_text<UsageError>([&] { RMSProp(list, {.alpha = 2}); }),
              HasSubstr("[optim.RMSProp] alpha must be in [0, 1], got 2"));
  EXPECT_THAT(test::error_text<UsageError>([&] { RMSProp(list, {.momentum = -1}); }),
              HasSubstr("momentum must be"));
  EXPECT_THAT(test::error_text<UsageError>([&] { Adagrad(list, {.lr_decay = -1}); }),
              HasSubstr("[optim.Adagrad] lr_decay must be a number >= 0, got -1"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                Lamb(list, {.betas = {1, 0.5}});
              }),
              HasSubstr("[optim.Lamb] betas[0] must be in [0, 1), got 1"));
  EXPECT_THAT(test::error_text<UsageError>([&] { Lars(list, {.lars_coeff = -1}); }),
              HasSubstr("[optim.Lars] lars_coeff must be"));
}

}  // namespace
}  // namespace argosy::optim
