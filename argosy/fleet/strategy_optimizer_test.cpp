// What strategy.lars, lamb and gradient_merge make of an optimizer, beside the same written by
// hand.
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/fleet/fleet_test_support.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/lamb.h"
#include "argosy/optim/lars.h"
#include "argosy/optim/sgd.h"

#include "tests/support/error_text.h"

namespace argosy::fleet {
namespace {

using ::testing::HasSubstr;

torch::nn::Linear net() {
  torch::nn::Linear out(4, 3);
  const at::NoGradGuard no_grad;
  out->weight.copy_((torch::arange(12) - 5).view({3, 4}) * 0.1);
  out->bias.fill_(0.25);
  return out;
}

/// Of another batch on each rank and in each pass.
template <typename Model>
void backward(Model& model, int64_t pass) {
  const at::Tensor x =
      torch::sin(torch::arange(8, at::kFloat).view({2, 4}) + pass + 10 * worker_index());
  model(x).square().mean().backward();
}

template <typename Model>
void train(Model& model, optim::Optimizer optimizer) {
  for (int64_t pass = 0; pass < 3; ++pass) {
    backward(model, pass);
    optimizer.step();
    optimizer.zero_grad();
  }
}

template <typename Model>
void expect_equal(const Model& a, const Model& b) {
  EXPECT_TRUE(a.module()->weight.equal(b.module()->weight));
  EXPECT_TRUE(a.module()->bias.equal(b.module()->bias));
}

const std::vector<optim::ParamGroup>& bias_is_faster() {
  static const std::vector<optim::ParamGroup> groups{{.names = {"bias"}, .lr_scale = 3}};
  return groups;
}

TEST(StrategyOptimizer, LarsOfAMomentumHasTheBitsOfLars) {
  run_job(2,
          [](const std::string&) {
            auto model = distributed_model(net());
            auto optimizer = distributed_optimizer(optim::Momentum(
                model,
                {.lr = 0.2, .momentum = 0.8, .grad_clip = optim::ClipGradByGlobalNorm(0.5)},
                bias_is_faster()));
            EXPECT_EQ(optimizer.state_dict().optimizer, "Lars");
            train(model, optimizer);
            auto hand = distributed_model(net());
            train(hand,
                  optim::Lars(hand,
                              {.lr = 0.2,
                               .momentum = 0.8,
                               .lars_coeff = 0.01,
                               .weight_decay = 0.002,
                               .eps = 1e-9,
                               .exclude_from_weight_decay = {"bia"},
                               .grad_clip = optim::ClipGradByGlobalNorm(0.5)},
                              bias_is_faster()));
            expect_equal(model, hand);
          },
          {.lars = true,
           .lars_configs = {.lars_coeff = 0.01,
                            .lars_weight_decay = 0.002,
                            .epsilon = 1e-9,
                            .exclude_from_weight_decay = {"bia"}}});
}

TEST(StrategyOptimizer, LambOfAnAdamWHasTheBitsOfLamb) {
  run_job(2,
          [](const std::string&) {
            auto model = distributed_model(net());
            train(model,
                  distributed_optimizer(optim::AdamW(
                      model, {.lr = 0.1, .betas = {0.8, 0.95}, .eps = 1e-5}, bias_is_faster())));
            auto hand = distributed_model(net());
            train(hand,
                  optim::Lamb(hand,
                              {.lr = 0.1,
                               .betas = {0.8, 0.95},
                               .eps = 1e-5,
                               .weight_decay = 0.3,
                               .exclude_from_weight_decay_fn =
                                   [](const std::string& name) { return name == "bias"; }},
                              bias_is_faster()));
            expect_equal(model, hand);
          },
          {.lamb = true,
           .lamb_configs = {.lamb_weight_decay = 0.3, .exclude_from_weight_decay = {"ias"}}});
}

TEST(StrategyOptimizer, LambKeepsWhichParametersOfAnAdamWDecay) {
  // The same as excluding the bias by lamb_configs: by the function, or by a group.
  const auto with_weight_only = [](const std::string& name) { return name == "weight"; };
  const std::vector<optim::ParamGroup> bias_without{{.names = {"bias"}, .weight_decay = 0.0}};
  run_job(2,
          [&](const std::string&) {
            auto hand = distributed_model(net());
            train(hand,
                  optim::Lamb(hand,
                              {.lr = 0.1,
                               .eps = 1e-8,
                               .weight_decay = 0.3,
                               .exclude_from_weight_decay_fn = [](const std::string& name) {
                                 return name == "bias";
                               }}));
            auto by_function = distributed_model(net());
            train(by_function,
                  distributed_optimizer(optim::AdamW(
                      by_function, {.lr = 0.1, .apply_decay_param_fun = with_weight_only})));
            expect_equal(by_function, hand);
            auto by_group = distributed_model(net());
            train(by_group,
                  distributed_optimizer(optim::AdamW(by_group, {.lr = 0.1}, bias_without)));
            expect_equal(by_group, hand);
            auto all = distributed_model(net());
            train(all, distributed_optimizer(optim::AdamW(all, {.lr = 0.1})));
            EXPECT_FALSE(all.module()->bias.equal(hand.module()->bias));
            EXPECT_THAT(test::error_text<ConfigError>([&] {
                          (void)distributed_optimizer(
                              optim::AdamW(all, {}, {{.names = {"bias"}, .weight_decay = 0.5}}));
                        }),
                        HasSubstr("strategy.lamb has one weight decay of its own"));
          },
          {.lamb = true, .lamb_configs = {.lamb_weight_decay = 0.3}});
}

TEST(StrategyOptimizer, OptimizersThatLarsAndLambDoNotActOnAreRefused) {
  const auto refusal = [](const auto& optimizer) {
    return test::error_text<ConfigError>([&] { (void)distributed_optimizer(optimizer); });
  };
  run_job(1,
          [&](const std::string&) {
            auto model = distributed_model(net());
            EXPECT_THAT(refusal(optim::SGD(model)),
                        HasSubstr("strategy.lars takes the place of optim::Momentum, got SGD"));
            EXPECT_THAT(refusal(optim::Momentum(model, {.nesterov = true})),
                        HasSubstr("strategy.lars knows no nesterov"));
            EXPECT_THAT(refusal(optim::Momentum(model, {.weight_decay = 0.1})),
                        HasSubstr("lars_configs.lars_weight_decay"));
            EXPECT_THAT(refusal(optim::Momentum(
                            model, {.apply_decay_param_fun = [](const auto&) { return true; }})),
                        HasSubstr("lars_configs.exclude_from_weight_decay instead"));
          },
          {.lars = true});
  run_job(1,
          [&](const std::string&) {
            auto model = distributed_model(net());
            EXPECT_THAT(refusal(optim::Momentum(model)),
                        HasSubstr("optim::Adam or optim::AdamW, got Momentum"));
            EXPECT_THAT(refusal(optim::Adam(model, {.amsgrad = true})), HasSubstr("amsgrad"));
          },
          {.lamb = true});
}

void expect_merged_like_by_hand(bool avg, const std::string& order) {
  constexpr int64_t kPasses = 3;
  run_job(2,
          [&](const std::string&) {
            const bool reduced = order == "reduced";
            auto model = distributed_model(net());
            auto hand = distributed_model(net());
            auto optimizer = distributed_optimizer(optim::Momentum(model, {.lr = 0.1}));
            optim::Momentum by_hand(hand, {.lr = 0.1});
            for (int64_t pass = 0; pass < 2 * kPasses; ++pass) {
              backward(model, pass);
              optimizer.step();
              optimizer.zero_grad();
              const bool last = pass % kPasses == kPasses - 1;
              {
                std::optional<parallel::NoSync> local;
                if (!last && !reduced) {
                  local.emplace(hand.no_sync());
                }
                backward(hand, pass);
              }
              if (last) {
                if (avg) {
                  for (const at::Tensor& parameter : hand.parameters()) {
                    parameter.mutable_grad().div_(kPasses);
                  }
                }
                by_hand.step();
                by_hand.zero_grad();
              } else {
                EXPECT_THAT(test::error_text<UsageError>([&] { (void)optimizer.state_dict(); }),
                            HasSubstr("of 3 passes"));
              }
              expect_equal(model, hand);
              EXPECT_EQ(model.stats().reduced_passes, reduced ? pass + 1 : (pass + 1) / kPasses);
            }
          },
          {.gradient_merge = true,
           .gradient_merge_configs = {.k_steps = kPasses, .avg = avg, .order = order}});
}

TEST(StrategyOptimizer, MergedGradientsHaveTheBitsOfAccumulationByHand) {
  expect_merged_like_by_hand(/*avg=*/true, "local");
  expect_merged_like_by_hand(/*avg=*/true, "reduced");
}
TEST(StrategyOptimizer, MergedGradientsAreASumWithoutAvg) {
  expect_merged_like_by_hand(/*avg=*/false, "local");
  expect_merged_like_by_hand(/*avg=*/false, "reduced");
}

TEST(StrategyOptimizer, MergingKeepsNoWrapperAlive) {
  run_job(2,
          [](const std::string&) {
            torch::nn::Linear module = net();
            std::optional model(distributed_model(module));
            auto optimizer = distributed_optimizer(optim::SGD(*model, {.lr = 0.1}));
            const std::weak_ptr<parallel::ddp::Core> core = model->core();
            model.reset();
            EXPECT_TRUE(core.expired()) << "its hooks would reduce beside those of a new wrapper";
            auto again = distributed_model(module);
            backward(again, 0);
            EXPECT_EQ(again.stats().reduced_passes, 1) << "and it is not under no_sync()";
          },
          {.gradient_merge = true, .gradient_merge_configs = {.k_steps = 2}});
}

TEST(StrategyOptimizer, ASecondOptimizerEndsTheMergingOfTheFirst) {
  run_job(2,
          [](const std::string&) {
            auto model = distributed_model(net());
            auto first = distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
            EXPECT_EQ(distributed_optimizer(first).impl(), first.impl());
            backward(model, 0);
            first.step();
            auto second = distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
            second.zero_grad();
            first.load_state_dict(second.state_dict());
            backward(model, 1);
            second.step();
            backward(model, 2);
            second.step();
            EXPECT_EQ(model.stats().reduced_passes, 1);
            EXPECT_THAT(test::error_text<UsageError>([&] { first.step(); }),
                        HasSubstr("Use that one"));
          },
          {.gradient_merge = true, .gradient_merge_configs = {.k_steps = 2}});
}

TEST(StrategyOptimizer, MergedGradientsAreNotUnscaledAgain) {
  run_job(1,
          [](const std::string&) {
            auto model = distributed_model(net());
            auto optimizer = distributed_optimizer(optim::SGD(model, {.lr = 0.1}));
            optim::GradScaler scaler;
            scaler.scale(model(torch::ones({2, 4})).sum()).backward();
            EXPECT_THAT(test::error_text<UsageError>([&] { scaler.step(optimizer); }),
                        HasSubstr("merges the gradients of several passes"));
          },
          {.gradient_merge = true, .gradient_merge_configs = {.k_steps = 2}});
}

}  // namespace
}  // namespace argosy::fleet
