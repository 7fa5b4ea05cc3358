#include <algorithm>

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
using ::testing::AllOf;
using testing::clone;
using ::testing::HasSubstr;
using testing::make_parameters;
using testing::same_bits;
using testing::set_gradients;

void train(Optimizer optimizer, const NamedTensors& parameters, int first, int last) {
  for (int step = first; step < last; ++step) {
    set_gradients(parameters, step);
    optimizer.step();
  }
}

std::string load_error(Optimizer optimizer, const OptimizerState& state) {
  return test::error_text<CheckpointError>([&] { optimizer.load_state_dict(state); });
}

TEST(OptimizerState, IsKeyedByNameWithPyTorchsStates) {
  const NamedTensors list = make_parameters(torch::kFloat);
  Adam adam(list, {.amsgrad = true});
  EXPECT_TRUE(adam.state_dict().parameters.empty()) << "nothing was updated yet";
  train(adam, list, 0, 3);
  const OptimizerState state = adam.state_dict();
  EXPECT_EQ(state.optimizer, "Adam");
  ASSERT_NE(state.find("fc.weight"), nullptr);
  const engine::StateDict& entry = *state.find("fc.weight");
  EXPECT_EQ(entry.at("step").item<double>(), 3);
  for (const char* name : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
    EXPECT_EQ(entry.at(name).sizes(), list[0].second.sizes());
  }
  SGD plain(list), momentum(list, {.momentum = 0.9});
  train(plain, list, 0, 1);
  train(momentum, list, 0, 1);
  EXPECT_EQ(plain.state_dict().find("scale")->size(), 1U);
  EXPECT_TRUE(momentum.state_dict().find("scale")->contains("momentum_buffer"));
}

// A run that was saved and resumed equals one that was not, though parameters are registered in
// another order.
template <typename Make>
void expect_resume(const Make& make) {
  const NamedTensors straight = make_parameters(torch::kFloat);
  Optimizer uninterrupted = make(straight);
  train(uninterrupted, straight, 0, 3);
  const OptimizerState saved = uninterrupted.state_dict().clone();
  NamedTensors resumed = clone(straight);
  NamedTensors reordered(resumed.rbegin(), resumed.rend());
  train(uninterrupted, straight, 3, 6);
  Optimizer fresh = make(reordered);
  fresh.load_state_dict(saved);
  train(fresh, resumed, 3, 6);
  EXPECT_TRUE(same_bits(straight, resumed));
}

TEST(OptimizerState, ResumedRunsEqualUninterruptedOnes) {
  expect_resume([](const NamedTensors& list) { return Adam(list, {.lr = 0.1, .amsgrad = true}); });
  expect_resume([](const NamedTensors& list) { return AdamW(list); });
  expect_resume(
      [](const NamedTensors& list) { return RMSProp(list, {.momentum = 0.9, .centered = true}); });
  expect_resume([](const NamedTensors& list) {
    return Adagrad(list, {.lr_decay = 0.1, .initial_accumulator_value = 0.5});
  });
  expect_resume([](const NamedTensors& list) { return Lamb(list); });
  expect_resume([](const NamedTensors& list) { return Lars(list); });
  expect_resume([](const NamedTensors& list) { return Momentum(list, {.nesterov = true}); });
  expect_resume([](const NamedTensors& list) {
    return SGD(list, {.momentum = 0.9, .dampening = 0.5}, {{.names = {"fc.*"}, .lr_scale = 3}});
  });
}

TEST(OptimizerState, CloneIsIndependent) {
  const NamedTensors list = make_parameters(torch::kFloat);
  Adam adam(list);
  train(adam, list, 0, 1);
  const OptimizerState shared = adam.state_dict(), copy = shared.clone();
  train(adam, list, 1, 2);
  EXPECT_FALSE(torch::equal(shared.find("big")->at("exp_avg"), copy.find("big")->at("exp_avg")));
}

TEST(OptimizerState, LoadingCopies) {
  const NamedTensors list = make_parameters(torch::kFloat);
  Adam first(list), second(list);
  train(first, list, 0, 1);
  const OptimizerState saved = first.state_dict().clone();
  second.load_state_dict(saved);
  const torch::Tensor before = saved.find("big")->at("exp_avg").clone();
  train(second, list, 1, 2);
  EXPECT_TRUE(torch::equal(saved.find("big")->at("exp_avg"), before));
}

TEST(OptimizerState, BringsTheLearningRates) {
  const NamedTensors list = make_parameters(torch::kFloat);
  const std::vector<ParamGroup> groups{{.names = {"fc.*"}, .lr_scale = 2}};
  SGD first(list, {.lr = 0.1}, groups), second(list, {.lr = 5}, groups);
  first.set_lr(0.01);
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.lr(), 0.01);
  EXPECT_EQ(second.param_groups()[1].lr, 0.02);
}

TEST(OptimizerState, ErrorsListEveryEntry) {
  const NamedTensors list = make_parameters(torch::kFloat);
  Adam adam(list);
  train(adam, list, 0, 1);
  NamedTensors other = clone(list);
  other[0] = {"fc.weight", torch::zeros({2, 2}, torch::requires_grad())};
  other[1].first = "classifier.bias";
  Adam fresh(other);
  EXPECT_THAT(
      load_error(fresh, adam.state_dict()),
      AllOf(HasSubstr("[optim.load_state_dict] the state does not fit the optimizer:"),
            HasSubstr("missing (1): classifier.bias"),
            HasSubstr("unexpected (1): fc.bias"),
            HasSubstr("mismatched (2): fc.weight.exp_avg: expected [2, 2] Float, got [33, 17] "
                      "Float")));
  EXPECT_TRUE(fresh.state_dict().parameters.empty()) << "a refused state must leave nothing behind";
}

TEST(OptimizerState, RefusesAnotherOptimizerAnotherDtypeAnotherGrouping) {
  const NamedTensors list = make_parameters(torch::kFloat);
  Adam adam(list);
  train(adam, list, 0, 1);
  EXPECT_THAT(load_error(SGD(list), adam.state_dict()),
              HasSubstr("optimizer: expected SGD, got \"Adam\""));
  EXPECT_THAT(load_error(Adam(list, {.amsgrad = true}), adam.state_dict()),
              HasSubstr("big.max_exp_avg_sq: expected [300, 301] Float, got nothing"));
  EXPECT_THAT(load_error(Adam(make_parameters(torch::kDouble)), adam.state_dict()),
              HasSubstr("expected [33] Double, got [33] Float"));
  EXPECT_THAT(load_error(Adam(list, {}, {{.names = {"fc.*"}}}), adam.state_dict()),
              HasSubstr("groups (2): expected 2 groups, got 1, group 0 has other parameters"));
  OptimizerState broken = adam.state_dict().clone();
  broken.parameters[0].second.set("step", torch::ones({2}));
  EXPECT_THAT(load_error(adam, broken), HasSubstr("fc.weight: expected a scalar \"step\""));
}

TEST(OptimizerState, RefusesStateThatItWouldDrop) {
  const NamedTensors list = make_parameters(torch::kFloat);
  Adam amsgrad(list, {.amsgrad = true});
  SGD momentum(list, {.momentum = 0.9});
  train(amsgrad, list, 0, 1);
  train(momentum, list, 0, 1);
  EXPECT_THAT(load_error(Adam(list), amsgrad.state_dict()),
              HasSubstr("big.max_exp_avg_sq: expected no such state, got [300, 301] Float"));
  EXPECT_THAT(load_error(SGD(list), momentum.state_dict()),
              HasSubstr("big.momentum_buffer: expected no such state, got [300, 301] Float"));
  // PyTorch writes None for a momentum that is not there.
  OptimizerState none = momentum.state_dict().clone();
  for (auto& [name, entry] : none.parameters) {
    entry.set("momentum_buffer", at::Tensor());
  }
  EXPECT_EQ(load_error(SGD(list), none), "nothing was thrown");
}

}  // namespace
}  // namespace argosy::optim
