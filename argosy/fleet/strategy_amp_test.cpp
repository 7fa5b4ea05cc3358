// What strategy.amp makes of a model and of a scaler, beside the same written by hand.
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/autocast.h"
#include "argosy/fleet/fleet_test_support.h"
#include "argosy/metrics/evaluate.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/parallel/sharded/fully_shard.h"

#include "tests/support/error_text.h"

namespace argosy::fleet {
namespace {

using ::testing::HasSubstr;
using Wrapper = parallel::DistributedDataParallel<torch::nn::Sequential>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The same weights at each call. Its products round in bfloat16.
torch::nn::Sequential amp_net() {
  torch::manual_seed(5);
  return torch::nn::Sequential(torch::nn::Linear(16, 24),
                               torch::nn::BatchNorm1d(24),
                               torch::nn::ReLU(),
                               torch::nn::Linear(24, 3));
}

/// Another batch on each rank and in each pass.
at::Tensor amp_batch(int64_t pass) {
  return torch::sin(torch::arange(128, at::kFloat).view({8, 16}) + pass + 10 * worker_index());
}

at::Tensor output_by_hand(Wrapper& model, const at::Tensor& x) {
  at::Tensor output;
  {
    const engine::Autocast autocast;
    output = model.forward<at::Tensor>(x);
  }
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  return output.to(at::kFloat);
}

/// A metric that keeps what the model said.
struct LastOutput {
  void update(const at::Tensor& output, const at::Tensor& /*labels*/) { *seen = output; }
  static double compute(const comm::Group& /*group*/) { return 0; }
  void reset() {}
  at::Tensor* seen;
};

bool same_weights(const Wrapper& a, const Wrapper& b) {
  bool same = true;
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    same = same && a.parameters()[i].equal(b.parameters()[i]);
  }
  return same;
}

/// Wrapped by hand, with batch norms over all ranks if `sync`.
Wrapper wrapped(bool sync) {
  torch::nn::Sequential module = amp_net();
  if (sync) {
    parallel::convert_sync_batchnorm(module, group());
  }
  return Wrapper(module, group());
}

void expect_bits_of_autocast_by_hand(bool sync) {
  run_job(2,
          [sync](const std::string&) {
            Wrapper model = distributed_model(amp_net());
            auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 0.01}));
            Wrapper hand = wrapped(sync);
            optim::Adam by_hand(hand, {.lr = 0.01});
            Wrapper full = wrapped(sync);
            optim::Adam in_full(full, {.lr = 0.01});
            for (int64_t pass = 0; pass < 4; ++pass) {
              const at::Tensor x = amp_batch(pass);
              const at::Tensor output = model.forward<at::Tensor>(x);
              EXPECT_EQ(output.scalar_type(), at::kFloat);
              EXPECT_FALSE(engine::is_autocast_enabled()) << "the loss is computed outside";
              output.square().mean().backward();
              output_by_hand(hand, x).square().mean().backward();
              full.forward<at::Tensor>(x).square().mean().backward();
              EXPECT_EQ(model.parameters()[0].grad().scalar_type(), at::kFloat);
              for (optim::Optimizer* each :
                   std::initializer_list<optim::Optimizer*>{&optimizer, &by_hand, &in_full}) {
                each->step();
                each->zero_grad();
              }
              EXPECT_TRUE(same_weights(model, hand)) << "pass " << pass;
            }
            EXPECT_FALSE(same_weights(model, full)) << "it is another sum";
            model.eval();
            hand.eval();
            const at::NoGradGuard no_grad;
            EXPECT_TRUE(
                model.forward<at::Tensor>(amp_batch(9)).equal(output_by_hand(hand, amp_batch(9))))
                << "evaluation computes likewise";
          },
          {.sync_batch_norm = sync, .amp = true});
}

TEST(StrategyAmp, TrainingHasTheBitsOfAutocastByHand) {
  expect_bits_of_autocast_by_hand(/*sync=*/false);
}
TEST(StrategyAmp, AndSoItHasWithBatchNormsOverAllRanks) {
  expect_bits_of_autocast_by_hand(/*sync=*/true);
}

TEST(StrategyAmp, AnEvaluationIsMixedToo) {
  run_job(2,
          [](const std::string&) {
            Wrapper model = distributed_model(amp_net());
            const at::Tensor x = amp_batch(0);
            const std::vector<std::pair<at::Tensor, at::Tensor>> batches{{x, x}};
            at::Tensor seen;
            metrics::evaluate(model, batches, LastOutput{&seen});
            Wrapper hand(amp_net(), group());
            hand.eval();
            const torch::NoGradGuard no_grad;
            EXPECT_TRUE(torch::equal(seen, output_by_hand(hand, x)));
            EXPECT_FALSE(torch::equal(seen, hand.forward<at::Tensor>(x)));
          },
          {.amp = true});
}

TEST(StrategyAmp, TheScalerIsThatOfItsSettings) {
  run_job(
      2,
      [](const std::string&) {
        Wrapper model = distributed_model(amp_net());
        auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 0.01}));
        optim::GradScaler scaler = distributed_scaler();
        Wrapper hand(amp_net(), group());
        optim::Adam by_hand(hand, {.lr = 0.01});
        optim::GradScaler scaler_by_hand(
            {.init_scale = 24, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 2});
        std::vector<double> scales;
        for (int64_t pass = 0; pass < 6; ++pass) {
          const at::Tensor x = amp_batch(pass);
          const float factor = pass == 3 && worker_index() == 1 ? kInfinity : 1.0F;
          scaler.scale(model.forward<at::Tensor>(x).square().mean() * factor).backward();
          scaler_by_hand.scale(output_by_hand(hand, x).square().mean() * factor).backward();
          const bool made = scaler.step(optimizer);
          EXPECT_EQ(made, pass != 3);
          EXPECT_EQ(made, scaler_by_hand.step(by_hand));
          scaler.update();
          scaler_by_hand.update();
          optimizer.zero_grad();
          by_hand.zero_grad();
          scales.push_back(scaler.get_scale());
          EXPECT_EQ(scales.back(), scaler_by_hand.get_scale());
          EXPECT_TRUE(same_weights(model, hand)) << "pass " << pass;
        }
        EXPECT_THAT(scales, ::testing::ElementsAre(24, 72, 72, 18, 18, 54));
      },
      {.amp = true,
       .amp_configs = {
           .init_loss_scaling = 24, .incr_every_n_steps = 2, .incr_ratio = 3, .decr_ratio = 0.25}});
}

torch::nn::Sequential pure_net() {
  torch::manual_seed(5);
  return torch::nn::Sequential(
      torch::nn::Linear(16, 24), torch::nn::ReLU(), torch::nn::Linear(24, 3));
}

/// Level O2: what fully_shard() does with the same types.
TEST(StrategyAmp, PureTypesAreThoseOfMixedPrecision) {
  for (const bool master_grad : {false, true}) {
    for (const int ranks : {1, 2}) {
      run_job(
          ranks,
          [&](const std::string&) {
            Wrapper model = distributed_model(pure_net());
            auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 0.01}));
            parallel::MixedPrecision mixed{.output_dtype = at::kFloat};
            if (master_grad) {
              mixed.reduce_dtype = at::kFloat;
            }
            Wrapper hand = parallel::fully_shard(
                pure_net(), group(), {.shard = parallel::ShardOptions{.mixed_precision = mixed}});
            optim::Optimizer by_hand = optim::Adam(hand, {.lr = 0.01});
            ASSERT_TRUE(hand.divide_step(by_hand));
            for (int64_t pass = 0; pass < 3; ++pass) {
              for (Wrapper* each : {&model, &hand}) {
                const at::Tensor output = each->forward<at::Tensor>(amp_batch(pass));
                EXPECT_EQ(output.scalar_type(), at::kFloat);
                output.square().mean().backward();
              }
              EXPECT_EQ(model.parameters()[0].scalar_type(), at::kBFloat16);
              EXPECT_EQ(model.parameters()[0].grad().scalar_type(),
                        master_grad ? at::kFloat : at::kBFloat16);
              for (optim::Optimizer* each :
                   std::initializer_list<optim::Optimizer*>{&optimizer, &by_hand}) {
                each->step();
                each->zero_grad();
              }
              EXPECT_TRUE(same_weights(model, hand)) << "pass " << pass;
            }
          },
          {.amp = true,
           .amp_configs = {.use_pure_bf16 = true, .master_grad = master_grad},
           .sharding = true});
    }
  }
}

TEST(StrategyAmp, WithoutItTheScalerDoesNothing) {
  run_job(1, [](const std::string&) {
    EXPECT_FALSE(distributed_scaler().is_enabled());
    Wrapper model = distributed_model(amp_net());
    Wrapper full(amp_net(), group());
    EXPECT_TRUE(
        model.forward<at::Tensor>(amp_batch(0)).equal(full.forward<at::Tensor>(amp_batch(0))));
  });
}

TEST(StrategyAmp, Float16OnTheCpuIsAnErrorThatNamesTheSetting) {
  run_job(
      1,
      [](const std::string&) {
        EXPECT_THAT(
            test::error_text<UsageError>([] { (void)distributed_model(amp_net()); }),
            HasSubstr("amp_configs.dtype of a strategy): the device cpu cannot compute in Half. "
                      "Choose BFloat16."));
      },
      {.amp = true, .amp_configs = {.dtype = "float16"}});
}

/// Two outputs, nested as those of an LSTM are, and one that stays what it is.
struct NestingImpl : torch::nn::Module {
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(16, 2));
  std::tuple<at::Tensor, std::map<std::string, at::Tensor>, std::optional<at::Tensor>> forward(
      const at::Tensor& x) {
    const at::Tensor y = layer(x);
    return {y, {{"double", y + y}, {"classes", y.argmax(1)}}, std::nullopt};
  }
};
TORCH_MODULE(Nesting);

TEST(StrategyAmp, NestedOutputsAreF32AndTheirGradientsReachTheModel) {
  run_job(2,
          [](const std::string&) {
            auto model = distributed_model(Nesting());
            auto [y, others, none] = model(amp_batch(0));
            EXPECT_EQ(y.scalar_type(), at::kFloat);
            EXPECT_EQ(others["double"].scalar_type(), at::kFloat);
            EXPECT_EQ(others["classes"].scalar_type(), at::kLong);
            EXPECT_FALSE(none.has_value());
            others["double"].sum().backward();
            EXPECT_EQ(model.stats().reduced_passes, 1);
            EXPECT_NE(model.module()->layer->weight.grad().abs().sum().item<float>(), 0);
          },
          {.find_unused_parameters = true, .amp = true});
}

}  // namespace
}  // namespace argosy::fleet
