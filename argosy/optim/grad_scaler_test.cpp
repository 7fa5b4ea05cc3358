#include "argosy/optim/grad_scaler.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"
#include "argosy/optim/optim_test_problem.h"

#include "tests/support/error_text.h"

namespace argosy::optim {
namespace {

using test::error_text;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// One weight of 1 and an optimizer with a state that counts its steps.
struct Problem {
  torch::Tensor weight = torch::ones({3}, torch::requires_grad());
  Adam optimizer{engine::NamedTensors{{"w", weight}}, {.lr = 0.1}};

  /// Backward of Σ w · by; `by` is the gradient.
  void backward(GradScaler& scaler, float by = 1) {
    optimizer.zero_grad();
    scaler.scale((weight * by).sum()).backward();
  }
  [[nodiscard]] int64_t steps() const {
    const OptimizerState state = optimizer.state_dict();
    const engine::StateDict* own = state.find("w");
    return own == nullptr ? 0 : own->find("step")->item<int64_t>();
  }
};

TEST(GradScaler, ScalesTheLossAndUnscalesGradients) {
  GradScaler scaler;
  Problem p;
  const torch::Tensor loss = torch::tensor({2.5F})[0];
  EXPECT_EQ(scaler.scale(loss).item<float>(), 2.5F * 65536);
  EXPECT_EQ(scaler.scale(std::vector{loss, loss})[1].item<float>(), 2.5F * 65536);
  p.backward(scaler, 3);
  EXPECT_EQ(p.weight.grad()[0].item<float>(), 3.0F * 65536);
  EXPECT_EQ(scaler.found_inf(p.optimizer), std::nullopt);
  scaler.unscale_(p.optimizer);
  EXPECT_EQ(p.weight.grad()[0].item<float>(), 3);
  EXPECT_EQ(scaler.found_inf(p.optimizer), false);
}

TEST(GradScaler, ABadUpdateLeavesWeightsMomentsAndStepCountAlone) {
  GradScaler scaler;
  Problem p;
  p.backward(scaler);
  EXPECT_TRUE(scaler.step(p.optimizer));
  scaler.update();
  const OptimizerState before = p.optimizer.state_dict().clone();
  const torch::Tensor weight = p.weight.detach().clone();
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    p.backward(scaler, bad);
    EXPECT_FALSE(scaler.step(p.optimizer));
    EXPECT_EQ(scaler.found_inf(p.optimizer), true);
    scaler.update();
  }
  EXPECT_EQ(scaler.get_scale(), 65536 / 8);
  EXPECT_TRUE(torch::equal(p.weight, weight));
  EXPECT_EQ(p.steps(), 1);
  EXPECT_TRUE(torch::equal(*p.optimizer.state_dict().find("w")->find("exp_avg"),
                           *before.find("w")->find("exp_avg")));
  p.backward(scaler);
  EXPECT_TRUE(scaler.step(p.optimizer)) << "the next good one goes on";
  EXPECT_EQ(p.steps(), 2);
}

TEST(GradScaler, FindsTheOneBadElementOfAnyTensorOfAnyLayout) {
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const engine::NamedTensors parameters = testing::make_parameters(dtype);
    Adam optimizer(parameters, {.lr = 0.1});
    for (const auto& [name, parameter] : parameters) {
      if (parameter.numel() == 0) {
        continue;
      }
      GradScaler scaler({.init_scale = 4});
      (void)scaler.scale(torch::ones({}));
      testing::set_gradients(parameters, 1);
      const torch::Tensor last =
          parameter.grad().dim() == 0 ? parameter.grad() : parameter.grad().select(-1, -1);
      last.fill_(std::nan(""));
      EXPECT_FALSE(scaler.step(optimizer)) << name;
    }
  }
}

TEST(GradScaler, UnscalesEveryLayout) {
  const engine::NamedTensors parameters = testing::make_parameters(torch::kFloat);
  Adam optimizer(parameters, {.lr = 0.1});
  testing::set_gradients(parameters, 1);
  std::vector<torch::Tensor> expected;
  for (const auto& [name, parameter] : parameters) {
    expected.push_back(parameter.grad() / 8);
  }
  // One with gaps in memory, which no bucket has and a program may.
  torch::Tensor wide = torch::empty({33, 34});
  wide.slice(1, 0, 34, 2).copy_(parameters[0].second.grad());
  parameters[0].second.mutable_grad() = wide.slice(1, 0, 34, 2);
  GradScaler scaler({.init_scale = 8});
  (void)scaler.scale(torch::ones({}));
  scaler.unscale_(optimizer);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(torch::equal(parameters[i].second.grad(), expected[i])) << parameters[i].first;
  }
}

TEST(GradScaler, ClippingAfterUnscaleSeesTheGradientsThemselves) {
  GradScaler scaler;
  Problem p;
  p.backward(scaler, 4);
  scaler.unscale_(p.optimizer);
  EXPECT_NEAR(clip_grad_norm_(p.optimizer.parameters(), 1.0), 4 * std::sqrt(3), 1e-6);
  EXPECT_TRUE(scaler.step(p.optimizer));
  EXPECT_NEAR(p.weight.grad()[0].item<double>(), 1 / std::sqrt(3), 1e-6) << "unscaled once";
}

TEST(GradScaler, GrowsAfterTheIntervalAndCountsAnewAfterASkip) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 3});
  Problem p;
  std::vector<double> scales;
  for (const float by : {1.0F, 1.0F, kInfinity, 1.0F, 1.0F, 1.0F, 1.0F}) {
    p.backward(scaler, by);
    scaler.step(p.optimizer);
    scaler.update();
    scales.push_back(scaler.get_scale());
  }
  EXPECT_THAT(scales, ::testing::ElementsAre(8, 8, 4, 4, 4, 8, 8));
  EXPECT_EQ(scaler.state_dict().growth_tracker, 1);
}

TEST(GradScaler, OneOptimizersInfinityLowersTheScaleOfAll) {
  GradScaler scaler({.init_scale = 8});
  Problem good;
  Problem bad;
  good.backward(scaler);
  bad.backward(scaler, kInfinity);
  EXPECT_TRUE(scaler.step(good.optimizer));
  EXPECT_FALSE(scaler.step(bad.optimizer));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
  EXPECT_EQ(good.steps(), 1);
  EXPECT_EQ(bad.steps(), 0);
}

TEST(GradScaler, RanksThatAgreeSkipWhatOneOfThemHasFound) {
  GradScaler scaler({.init_scale = 8});
  Problem p;
  int asked = 0;
  bool other = true;
  scaler.agree_by([&](const GradScaler::Seen& own) {
    ++asked;
    return GradScaler::Seen{.gradients = true, .inf = own.inf || other};
  });
  p.backward(scaler);
  EXPECT_FALSE(scaler.step(p.optimizer)) << "another rank has found one";
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
  other = false;
  p.backward(scaler);
  EXPECT_TRUE(scaler.step(p.optimizer));
  EXPECT_EQ(asked, 2) << "once for each update";
}

TEST(GradScaler, DisabledDoesNothing) {
  GradScaler scaler({.init_scale = -1, .enabled = false});
  Problem p;
  p.backward(scaler, 2);
  EXPECT_EQ(p.weight.grad()[0].item<float>(), 2);
  scaler.unscale_(p.optimizer);
  scaler.unscale_(p.optimizer);
  EXPECT_TRUE(scaler.step(p.optimizer));
  scaler.update();
  EXPECT_EQ(p.steps(), 1);
  EXPECT_EQ(scaler.get_scale(), 1);
}

TEST(GradScaler, GoesOnFromItsState) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 4});
  Problem p;
  for (int i = 0; i < 3; ++i) {
    p.backward(scaler);
    scaler.step(p.optimizer);
    scaler.update();
  }
  GradScaler other;
  other.load_state_dict(scaler.state_dict());
  p.backward(other);
  other.step(p.optimizer);
  other.update();
  EXPECT_EQ(other.get_scale(), 16);
  EXPECT_EQ(other.state_dict().growth_interval, 4);
}

TEST(GradScaler, CallsInTheWrongOrderAreNamed) {
  GradScaler scaler;
  Problem p;
  const auto text = [](auto call) { return error_text<UsageError>(call); };
  EXPECT_THAT(text([&] { scaler.unscale_(p.optimizer); }),
              HasSubstr("[optim.GradScaler] unscale_() before the first scale()"));
  EXPECT_THAT(text([&] { scaler.step(p.optimizer); }), HasSubstr("step() before the first"));
  EXPECT_THAT(text([&] { scaler.update(); }), HasSubstr("update() before the first"));
  p.backward(scaler);
  EXPECT_THAT(text([&] { scaler.update(); }), HasSubstr("without a step()"));
  scaler.unscale_(p.optimizer);
  EXPECT_THAT(text([&] { scaler.unscale_(p.optimizer); }), HasSubstr("already been called"));
  EXPECT_THAT(text([&] { (void)scaler.state_dict(); }), HasSubstr("Call it after update()"));
  EXPECT_TRUE(scaler.step(p.optimizer));
  EXPECT_THAT(text([&] { scaler.unscale_(p.optimizer); }), HasSubstr("is called after step()"));
  EXPECT_THAT(text([&] { scaler.step(p.optimizer); }), HasSubstr("step() has already been called"));
  scaler.update();
  p.optimizer.zero_grad();
  EXPECT_THAT(text([&] { scaler.step(p.optimizer); }), HasSubstr("no parameter of this optimizer"));
  EXPECT_EQ(p.steps(), 1);
}

TEST(GradScaler, OptionsAndStatesOutOfRangeAreNamed) {
  const auto text = [](const GradScalerOptions& options) {
    return error_text<UsageError>([&] { const GradScaler scaler(options); });
  };
  EXPECT_THAT(text({.growth_factor = 1}), HasSubstr("growth_factor must be greater than 1, got 1"));
  EXPECT_THAT(text({.backoff_factor = 1}), HasSubstr("backoff_factor must be between 0 and 1"));
  EXPECT_THAT(text({.growth_interval = 0}), HasSubstr("growth_interval must be positive, got 0"));
  EXPECT_THAT(text({.init_scale = 1e39}), HasSubstr("finite in f32"));
  GradScaler scaler;
  EXPECT_THAT(error_text<CheckpointError>([&] { scaler.load_state_dict({.scale = 0}); }),
              HasSubstr("the scale must be positive"));
  EXPECT_EQ(scaler.get_scale(), 65536);
  Problem p;
  p.backward(scaler);
  scaler.update(128.0);
  EXPECT_EQ(scaler.get_scale(), 128);
  EXPECT_THAT(error_text<UsageError>([&] { scaler.update(-1); }), HasSubstr("update(): the scale"));
}

TEST(GradScaler, RefusesAnUpdateThatBeganInBackward) {
  GradScaler scaler;
  Problem p;
  p.backward(scaler);
  p.optimizer.impl()->step_early(std::vector<at::Tensor>{p.weight});
  EXPECT_THAT(error_text<UsageError>([&] { scaler.step(p.optimizer); }),
              HasSubstr("Leave out overlap_update, or the scaler"));
}

TEST(GradScaler, AfterARefusedUnscaleThereIsNothingToLose) {
  GradScaler scaler;
  Problem p;
  p.backward(scaler);
  const at::Tensor grad = p.weight.grad();
  p.weight.mutable_grad() = grad.to_sparse();
  EXPECT_THROW(scaler.unscale_(p.optimizer), UsageError);
  EXPECT_THROW(scaler.step(p.optimizer), UsageError);
  EXPECT_EQ(scaler.state_dict().scale, 65536);
  p.weight.mutable_grad() = grad;
  EXPECT_TRUE(scaler.step(p.optimizer));
}

TEST(GradScaler, ARankWithoutGradientsDecidesAsTheOthersDo) {
  GradScaler scaler({.init_scale = 8});
  Problem p;
  bool other = true;
  scaler.agree_by([&](const GradScaler::Seen& own) {
    return GradScaler::Seen{.gradients = true, .inf = own.inf || other};
  });
  (void)scaler.scale(torch::ones({}));  // of a loss that reaches nothing here
  EXPECT_FALSE(scaler.step(p.optimizer));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
  other = false;
  EXPECT_TRUE(scaler.step(p.optimizer));
  scaler.update();
  EXPECT_EQ(scaler.state_dict().growth_tracker, 1) << "so that the scale grows on all at once";
  EXPECT_EQ(p.steps(), 0);
}

TEST(GradScaler, RanksThatAgreeAndHaveNoGradientAtAllSaySo) {
  GradScaler scaler({.init_scale = 8});
  Problem p;
  scaler.agree_by([](const GradScaler::Seen& own) { return own; });
  (void)scaler.scale(torch::ones({}));
  EXPECT_THAT(test::error_text<UsageError>([&] { scaler.step(p.optimizer); }),
              HasSubstr("no parameter of this optimizer has a gradient"));
  EXPECT_THROW(scaler.update(), UsageError);
  EXPECT_EQ(scaler.get_scale(), 8);
}

}  // namespace
}  // namespace argosy::optim
