#include "argosy/checkpoint/other_states.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/test_checkpoints.h"
#include "argosy/optim/optim.h"

namespace argosy::checkpoint {
namespace {

using testing::checkpoint_error;
using ::testing::HasSubstr;

std::string trained(const std::string& name) {
  return std::string(ARGOSY_GOLDEN_DIR "/training_files/") + name;
}

torch::nn::Sequential tiny() {
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Tanh(), torch::nn::Linear(4, 2));
}

/// The two steps after those of generate_torch.py and generate_paddle.py.
template <typename Schedule>
void two_steps(torch::nn::Sequential& net, optim::Optimizer optimizer, Schedule& schedule) {
  for (int i = 0; i < 2; ++i) {
    const at::Tensor inputs = torch::arange(12, torch::kFloat).view({4, 3}).sin();
    optimizer.zero_grad();
    net->forward(inputs).pow(2).sum().backward();
    optimizer.step();
    schedule.step();
  }
}

/// What a .txt of theirs holds: names and numbers.
std::map<std::string, std::vector<double>> numbers_in(const std::string& file) {
  std::ifstream in(file);
  std::map<std::string, std::vector<double>> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double number = 0; words >> number;) {
      all[name].push_back(number);
    }
  }
  return all;
}

void expect_weights(torch::nn::Sequential& net, const std::string& file, bool transposed) {
  const auto expected = numbers_in(file);
  ASSERT_EQ(expected.count("2.bias"), 1U) << file;
  for (const auto& [name, tensor] : engine::state_dict(net)) {
    const at::Tensor theirs = torch::tensor(expected.at(name), torch::kDouble);
    const at::Tensor own = transposed && tensor.dim() == 2 ? tensor.t() : tensor;
    // Paddle keeps 1 - beta2^t with four digits, for the power is an f32 near one.
    EXPECT_TRUE(
        torch::allclose(own.flatten().to(torch::kDouble), theirs, 1e-6, transposed ? 2e-6 : 2e-7))
        << file << ": " << name;
  }
}

/// A training that theirs was in the middle of comes to their weights here.
template <typename Schedule>
void continue_torch(const std::string& name,
                    torch::nn::Sequential net,
                    optim::Optimizer optimizer,
                    Schedule schedule) {
  SCOPED_TRACE(name);
  const std::string file = trained(name + ".pth");
  load_weights(net, file, {.key = "model"});
  optimizer.load_state_dict(read_optimizer_state(file, optimizer));
  schedule.load_state_dict(read_schedule_state(file, schedule.state_dict()));
  EXPECT_EQ(read_epoch(file), 3);
  EXPECT_EQ(schedule.last_step(), 3);
  two_steps(net, optimizer, schedule);
  expect_weights(net, trained(name + ".txt"), false);
  EXPECT_NEAR(optimizer.lr(), numbers_in(trained(name + ".txt")).at("lr")[0], 1e-12);
}

TEST(OtherStates, TrainingsOfPyTorchContinue) {
  auto net = tiny();
  const optim::Adam adam(net, {.lr = 1});
  continue_torch("adam", net, adam, optim::StepLR(adam, {.step_size = 2, .gamma = 0.5}));
  const optim::AdamW adamw(net, {.lr = 1, .weight_decay = 0.1});
  continue_torch("adamw", net, adamw, optim::CosineAnnealingLR(adamw, {.t_max = 8}));
  const optim::SGD sgd(net, {.lr = 1, .momentum = 0.9});
  continue_torch("sgd", net, sgd, optim::ExponentialLR(sgd, {.gamma = 0.9}));
  const optim::RMSProp rmsprop(net, {.lr = 1});
  continue_torch("rmsprop", net, rmsprop, optim::StepLR(rmsprop, {.step_size = 1, .gamma = 0.5}));
  const optim::Adagrad adagrad(net, {.lr = 1});
  continue_torch("adagrad", net, adagrad, optim::StepLR(adagrad, {.step_size = 4, .gamma = 0.5}));
}

TEST(OtherStates, GroupsKeepTheirOwnRates) {
  auto net = tiny();
  const optim::AdamW adamw(net->named_parameters(),
                           {.lr = 1, .weight_decay = 0.01},
                           {{.names = {"0.*"}, .lr = 2, .weight_decay = 0.0}});
  continue_torch("groups", net, adamw, optim::StepLR(adamw, {.step_size = 2, .gamma = 0.5}));
  EXPECT_NEAR(adamw.param_groups()[1].lr, 0.0025, 1e-12);
}

TEST(OtherStates, TrainingsOfPaddleContinue) {
  const auto continue_paddle = [](const std::string& name, const auto& make) {
    SCOPED_TRACE(name);
    auto net = tiny();
    optim::Optimizer optimizer = make(net);
    optim::StepLR schedule(optimizer, {.step_size = 2, .gamma = 0.5});
    load_weights(net, trained(name + ".pdparams"));
    optimizer.load_state_dict(
        read_optimizer_state(trained(name + ".pdopt"),
                             optimizer,
                             {.weights = trained(name + ".pdparams"), .module = net.get()}));
    schedule.load_state_dict(read_schedule_state(trained(name + ".pdopt"), schedule.state_dict()));
    two_steps(net, optimizer, schedule);
    expect_weights(net, trained(name + ".txt"), true);
    EXPECT_NEAR(optimizer.lr(), 0.025, 1e-12);
  };
  continue_paddle("paddle_adam", [](auto& net) { return optim::Adam(net, {.lr = 0.1}); });
  continue_paddle("paddle_adamw",
                  [](auto& net) { return optim::AdamW(net, {.lr = 0.1, .weight_decay = 0.1}); });
  continue_paddle("paddle_momentum",
                  [](auto& net) { return optim::SGD(net, {.lr = 0.1, .momentum = 0.9}); });
}

/// Where the metric was best, and for how long it has been worse.
TEST(OtherStates, APlateauOfPaddleContinues) {
  auto net = tiny();
  const optim::SGD sgd(net, {.lr = 1});
  optim::ReduceLROnPlateau schedule(sgd, {.factor = 0.5, .patience = 1});
  const optim::LRSchedulerState state =
      read_schedule_state(trained("paddle_plateau.pdopt"), schedule.state_dict());
  EXPECT_EQ(state.best, std::optional(0.25));
  EXPECT_EQ(state.num_bad_epochs, 1);
  EXPECT_EQ(state.cooldown_counter, 0);
  schedule.load_state_dict(state);
  EXPECT_NEAR(sgd.lr(), 0.1, 1e-9);
  schedule.step(0.5);  // the second bad one in turn
  EXPECT_NEAR(sgd.lr(), 0.05, 1e-9);
}

struct WithBackboneImpl : torch::nn::Module {
  WithBackboneImpl() { backbone = register_module("backbone", tiny()); }
  torch::nn::Sequential backbone{nullptr};
};
TORCH_MODULE(WithBackbone);

TEST(OtherStates, PaddlesNamesMayBeChanged) {
  const WithBackbone net;
  optim::Adam adam(net, {.lr = 0.1});
  const std::string file = trained("paddle_adam");
  OtherStateOptions options{.weights = file + ".pdparams", .module = net.get()};
  EXPECT_THAT(
      checkpoint_error([&] { (void)read_optimizer_state(file + ".pdopt", adam, options); }),
      ::testing::AllOf(HasSubstr("names no parameter \"backbone.0."), HasSubstr(".renames")));
  options.renames = {{"^", "backbone."}};
  const optim::OptimizerState state = read_optimizer_state(file + ".pdopt", adam, options);
  EXPECT_EQ(state.parameters.size(), 4U);
  adam.load_state_dict(state);
}

TEST(OtherStates, WhatDoesNotFitIsNamed) {
  auto net = tiny();
  const optim::Adam adam(net, {.lr = 1});
  EXPECT_THAT(checkpoint_error([&] { (void)read_optimizer_state(trained("groups.pth"), adam); }),
              HasSubstr("has 2 groups of parameters, this one has 1"));
  auto small = torch::nn::Linear(2, 2);
  const optim::Adam fewer(small, {.lr = 1});
  EXPECT_THAT(checkpoint_error([&] { (void)read_optimizer_state(trained("adam.pth"), fewer); }),
              HasSubstr("group 0 there has 4 parameters, here it has 2"));
  optim::SGD sgd(net, {.lr = 1, .momentum = 0.9});
  EXPECT_THAT(checkpoint_error(
                  [&] { sgd.load_state_dict(read_optimizer_state(trained("adam.pth"), sgd)); }),
              HasSubstr("exp_avg"));
  EXPECT_THAT(checkpoint_error(
                  [&] { (void)read_optimizer_state(trained("adam.pth"), adam, {.key = "optim"}); }),
              HasSubstr("there is no \"optim\" in it"));
  EXPECT_THROW((void)read_optimizer_state(trained("paddle_adam.pdopt"), adam), UsageError);
  EXPECT_THAT(checkpoint_error([&] { (void)read_epoch(trained("adam.pth"), "iteration"); }),
              HasSubstr("iteration"));
}

}  // namespace
}  // namespace argosy::checkpoint
