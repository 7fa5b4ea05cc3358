/// Optimizers, clipping and averages over parameters that are not on the CPU, against the kernels.
#include "argosy/optim/optim.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim_test_problem.h"

#include "tests/support/error_text.h"
#include "tests/support/on_devices.h"

namespace argosy::optim {
namespace {

using testing::clone;
using ::testing::HasSubstr;
using testing::make_parameters;
using testing::set_gradients;

using Make = std::function<Optimizer(const engine::NamedTensors&)>;

template <typename O, typename Options>
Make make(const Options& options) {
  return [options](const engine::NamedTensors& parameters) -> Optimizer {
    return O(parameters, options);
  };
}

std::vector<std::pair<std::string, Make>> optimizers() {
  return {
      {"SGD", make<SGD>(SGDOptions{.lr = 0.1, .weight_decay = 1e-2})},
      {"SGD dampened",
       make<SGD>(SGDOptions{
           .lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = L1Decay(1e-2)})},
      {"SGD clipped",
       make<SGD>(SGDOptions{
           .lr = 0.1, .momentum = 0.9, .nesterov = true, .grad_clip = ClipGradByValue(0.5)})},
      {"Momentum", make<Momentum>(MomentumOptions{.lr = 0.1})},
      {"Adam", make<Adam>(AdamOptions{.lr = 1e-2, .weight_decay = L2Decay(1e-2)})},
      {"Adam fast, amsgrad",
       make<Adam>(AdamOptions{.lr = 1e-2, .betas = {0.4, 0.99}, .amsgrad = true})},
      {"AdamW", make<AdamW>(AdamWOptions{.lr = 1e-2, .weight_decay = 0.1})},
      {"AdamW of groups",
       [](const engine::NamedTensors& parameters) -> Optimizer {
         return AdamW(parameters,
                      {.lr = 1e-2, .weight_decay = 0.1},
                      {{.params = {parameters[0].second}, .lr_scale = 10},
                       {.params = {parameters[2].second}, .weight_decay = 0.0}});
       }},
      {"RMSProp", make<RMSProp>(RMSPropOptions{.weight_decay = 1e-2})},
      {"RMSProp centered", make<RMSProp>(RMSPropOptions{.momentum = 0.9, .centered = true})},
      {"RMSProp of Paddle",
       make<RMSProp>(RMSPropOptions{.eps = 1e-6, .centered = true, .form = RMSPropForm::kPaddle})},
      {"Adagrad",
       make<Adagrad>(
           AdagradOptions{.lr = 0.1, .lr_decay = 0.01, .initial_accumulator_value = 0.2})},
      {"Lamb", make<Lamb>(LambOptions{.lr = 1e-2})},
      {"Lars", make<Lars>(LarsOptions{.lr = 0.1})},
      {"SGD by the global norm",
       make<SGD>(SGDOptions{.lr = 0.1, .grad_clip = ClipGradByGlobalNorm(1.0)})},
      {"SGD by each norm", make<SGD>(SGDOptions{.lr = 0.1, .grad_clip = ClipGradByNorm(0.5)})},
  };
}

engine::NamedTensors moved(const engine::NamedTensors& parameters, at::Device device) {
  engine::NamedTensors result;
  for (const auto& [name, tensor] : parameters) {
    result.emplace_back(
        name,
        tensor.detach().to(device, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true));
  }
  return result;
}

/// Both get the same gradients; a parameter without one stays.
void set_both(const engine::NamedTensors& here, const engine::NamedTensors& there, int64_t step) {
  set_gradients(here, step);
  here[1].second.mutable_grad() = step % 2 == 0 ? here[1].second.grad() : at::Tensor();
  for (std::size_t i = 0; i < here.size(); ++i) {
    const at::Tensor& grad = here[i].second.grad();
    there[i].second.mutable_grad() =
        grad.defined() ? grad.to(there[i].second.device(), false, true) : at::Tensor();
  }
}

class OptimOnDevices : public test::OnDevices {
 protected:
  void expect_same(const engine::NamedTensors& there,
                   const engine::NamedTensors& here,
                   const std::string& what) const {
    for (std::size_t i = 0; i < here.size(); ++i) {
      expect_equal(there[i].second, here[i].second, what + ", " + here[i].first);
    }
  }
};

TEST_P(OptimOnDevices, StepsAreTheKernels) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    for (const auto& [name, make_one] : optimizers()) {
      const engine::NamedTensors here = make_parameters(type);
      const engine::NamedTensors there = moved(here, device(1));
      Optimizer own = make_one(here);
      Optimizer theirs = make_one(there);
      for (int64_t step = 0; step < 4; ++step) {
        set_both(here, there, step);
        own.step();
        theirs.step();
      }
      expect_same(there, here, name);
      const OptimizerState a = own.state_dict(), b = theirs.state_dict();
      ASSERT_EQ(a.parameters.size(), b.parameters.size());
      for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        for (const auto& [key, tensor] : a.parameters[i].second) {
          expect_equal(b.parameters[i].second.at(key), tensor, name + " " + key);
        }
      }
    }
  }
}

TEST_P(OptimOnDevices, StateMovesBetweenTheCpuAndADevice) {
  const engine::NamedTensors here = make_parameters(torch::kFloat);
  Adam own(here, {.lr = 1e-2});
  set_gradients(here, 0);
  own.step();
  const engine::NamedTensors there = moved(here, device());
  Adam theirs(there, {.lr = 1e-2});
  theirs.load_state_dict(own.state_dict());
  set_both(here, there, 1);
  own.step();
  theirs.step();
  expect_same(there, here, "from the CPU");
  const engine::NamedTensors back = moved(there, at::kCPU);
  Adam again(back, {.lr = 1e-2});
  again.load_state_dict(theirs.state_dict());
  set_both(here, back, 2);
  own.step();
  again.step();
  expect_same(back, here, "and back");
}

TEST_P(OptimOnDevices, ParametersMayBeInBothPlaces) {
  const engine::NamedTensors here = make_parameters(torch::kDouble);
  engine::NamedTensors both = moved(here, device());
  both[0].second = here[0].second.detach().clone().requires_grad_(true);
  SGD own(here, {.lr = 0.1, .grad_clip = ClipGradByGlobalNorm(1.0)});
  SGD mixed(both, {.lr = 0.1, .grad_clip = ClipGradByGlobalNorm(1.0)});
  set_both(here, both, 0);
  own.step();
  mixed.step();
  expect_same(both, here, "with a norm over both");
}

TEST_P(OptimOnDevices, AutogradLearnsOfAStep) {
  const engine::NamedTensors there = moved(make_parameters(torch::kFloat), device());
  const at::Tensor& weight = there[0].second;
  const at::Tensor loss = weight.mul(weight).sum();
  set_both(make_parameters(torch::kFloat), there, 0);
  SGD optimizer(there, {.lr = 0.1});
  optimizer.step();
  EXPECT_THROW(loss.backward(), c10::Error) << "the weight that backward needs has changed";
  optimizer.zero_grad({.set_to_none = false});
  expect_equal(weight.grad(), at::zeros({33, 17}));
}

TEST_P(OptimOnDevices, ClippingByHand) {
  const engine::NamedTensors here = make_parameters(torch::kDouble);
  const engine::NamedTensors there = moved(here, device());
  set_both(here, there, 0);
  for (const double type : {2.0, HUGE_VAL}) {
    const double norm = clip_grad_norm_(here, 3.0, {.norm_type = type});
    EXPECT_EQ(clip_grad_norm_(there, 3.0, {.norm_type = type}), norm);
  }
  clip_grad_value_(here, 0.01);
  clip_grad_value_(there, 0.01);
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (here[i].second.grad().defined()) {
      EXPECT_TRUE(there[i].second.grad().cpu().allclose(here[i].second.grad(), 1e-12)) << i;
    }
  }
}

TEST_P(OptimOnDevices, AnAverageOfWeights) {
  const engine::NamedTensors here = make_parameters(torch::kFloat);
  const engine::NamedTensors there = moved(here, device());
  ExponentialMovingAverage own(here, {.decay = 0.9}), theirs(there, {.decay = 0.9});
  for (int64_t step = 0; step < 3; ++step) {
    own.update();
    theirs.update();
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < here.size(); ++i) {
      here[i].second.mul_(0.5);
      there[i].second.mul_(0.5);
    }
  }
  const EmaState state{.num_updates = own.num_updates(),
                       .averages = own.state_dict().averages.clone()};
  theirs.apply();
  own.apply();
  expect_same(there, here, "average");
  theirs.restore();
  theirs.load_state_dict(state);  // the CPU's
  theirs.apply();
  expect_same(there, here, "average that was loaded");
}

TEST_P(OptimOnDevices, AGradientElsewhereIsRefused) {
  const engine::NamedTensors there = moved(make_parameters(torch::kFloat), device());
  SGD optimizer(there, {.lr = 0.1});
  set_both(make_parameters(torch::kFloat), there, 0);
  there[0].second.mutable_grad() = at::Tensor();
  at::Tensor(there[0].second).set_data(there[0].second.detach().cpu());
  there[0].second.mutable_grad() = at::ones({33, 17});
  at::Tensor(there[0].second).set_data(at::ones({33, 17}, device()));
  EXPECT_THAT(test::error_text<UsageError>([&] { optimizer.step(); }),
              HasSubstr("its gradient on cpu"));
}

ARGOSY_ON_DEVICES(OptimOnDevices);

}  // namespace
}  // namespace argosy::optim
