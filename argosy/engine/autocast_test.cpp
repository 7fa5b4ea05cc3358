#include "argosy/engine/autocast.h"

#include <stdexcept>
#include <thread>

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/version.h"

#include "tests/support/error_text.h"

namespace argosy::engine {
namespace {

using ::testing::HasSubstr;

torch::Tensor product() {
  torch::manual_seed(3);
  const torch::Tensor a = torch::randn({6, 5});
  const torch::Tensor b = torch::randn({5, 4});
  return torch::mm(a, b);
}

at::ScalarType computed_in() {
  return product().scalar_type();
}

TEST(Autocast, ProductsAreInBfloat16WhileItLives) {
  EXPECT_FALSE(is_autocast_enabled());
  {
    const Autocast autocast;
    EXPECT_TRUE(is_autocast_enabled());
    EXPECT_EQ(computed_in(), torch::kBFloat16);
  }
  EXPECT_FALSE(is_autocast_enabled());
  EXPECT_EQ(computed_in(), torch::kFloat);
}

TEST(Autocast, GivesTheBitsOfCastingByHand) {
  torch::manual_seed(3);
  const torch::Tensor a = torch::randn({6, 5});
  const torch::Tensor b = torch::randn({5, 4});
  const torch::Tensor by_hand = torch::mm(a.to(torch::kBFloat16), b.to(torch::kBFloat16));
  const Autocast autocast;
  EXPECT_TRUE(torch::equal(product(), by_hand));
}

TEST(Autocast, AnInnerOneSwitchesItOffAndItsEndOnAgain) {
  const Autocast outer;
  {
    const Autocast off({.enabled = false});
    EXPECT_EQ(computed_in(), torch::kFloat);
    {
      const Autocast on_again;
      EXPECT_EQ(computed_in(), torch::kBFloat16);
    }
    EXPECT_EQ(computed_in(), torch::kFloat);
  }
  EXPECT_EQ(computed_in(), torch::kBFloat16);
}

TEST(Autocast, AnExceptionEndsItToo) {
  try {
    const Autocast outer;
    const Autocast off({.enabled = false});
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(is_autocast_enabled());
  }
  EXPECT_EQ(computed_in(), torch::kFloat);
}

TEST(Autocast, OtherThreadsDoNotSeeIt) {
  const Autocast autocast;
  auto seen = torch::kDouble;
  std::thread([&] { seen = computed_in(); }).join();
  EXPECT_EQ(seen, torch::kFloat);
}

/// Of two uses of a weight inside a region, whether one cast served both.
bool casts_once(const AutocastOptions& options) {
  const torch::Tensor weight = torch::ones({4, 4}, torch::requires_grad());
  const Autocast autocast(options);
  const torch::Tensor first = torch::mm(torch::ones({2, 4}), weight);
  {
    const torch::NoGradGuard no_grad;
    weight.fill_(2);  // a kept cast does not see it
  }
  const torch::Tensor second = torch::mm(torch::ones({2, 4}), weight);
  return torch::equal(first, second);
}

TEST(Autocast, CastsAWeightOnceUnlessToldOtherwise) {
  EXPECT_TRUE(casts_once({}));
  EXPECT_FALSE(casts_once({.cache = false}));
  EXPECT_TRUE(casts_once({})) << "the choice ended with its guard";
}

TEST(Autocast, KeepsCastsUntilTheOutermostOneEnds) {
  const torch::Tensor weight = torch::ones({4, 4}, torch::requires_grad());
  const torch::Tensor ones = torch::ones({2, 4});
  const auto change = [&](double value) {
    const torch::NoGradGuard no_grad;
    weight.fill_(value);
  };
  {
    const Autocast outer;
    {
      const Autocast inner;
      EXPECT_EQ(torch::mm(ones, weight)[0][0].item<float>(), 4);
    }
    change(2);
    EXPECT_EQ(torch::mm(ones, weight)[0][0].item<float>(), 4) << "cast in the inner region";
  }
  const Autocast next;
  EXPECT_EQ(torch::mm(ones, weight)[0][0].item<float>(), 8) << "a later region casts anew";
}

TEST(Autocast, WhatRunsUncachedLeavesNoGraphlessWeightBehind) {
  const torch::Tensor weight = torch::ones({4, 4}, torch::requires_grad());
  const Autocast autocast;
  {
    const torch::NoGradGuard no_grad;
    const AutocastUncached trial;
    (void)torch::mm(torch::ones({2, 4}), weight);
  }
  EXPECT_TRUE(torch::mm(torch::ones({2, 4}), weight).requires_grad());
}

void choose_on_cuda(at::ScalarType dtype) {
#if ARGOSY_TORCH_AT_LEAST(2, 4)
  at::autocast::set_autocast_dtype(at::kCUDA, dtype);
#else
  at::autocast::set_autocast_gpu_dtype(dtype);
#endif
}

TEST(Autocast, AThreadThatWorksForAnotherComputesAsItDoes) {
  const at::ScalarType before = autocast_dtype(at::kCUDA);
  choose_on_cuda(torch::kBFloat16);
  const torch::Tensor weight = torch::ones({4, 4}, torch::requires_grad());
  const torch::Tensor ones = torch::ones({2, 4});
  {
    const Autocast autocast;
    const AutocastState state;
    std::thread([&] {
      const torch::NoGradGuard no_grad;
      {
        const AutocastStateGuard guard(state);
        EXPECT_EQ(computed_in(), torch::kBFloat16);
        EXPECT_EQ(autocast_dtype(at::kCUDA), torch::kBFloat16);
        EXPECT_EQ(torch::mm(ones, weight)[0][0].item<float>(), 4);
        weight.fill_(2);
        EXPECT_EQ(torch::mm(ones, weight)[0][0].item<float>(), 8) << "casts are not kept";
      }
      EXPECT_FALSE(is_autocast_enabled());
      EXPECT_EQ(autocast_dtype(at::kCUDA), before);
    }).join();
  }
  choose_on_cuda(before);
}

TEST(Autocast, GradientsOfWeightsAreF32) {
  torch::nn::Linear layer(3, 2);
  torch::Tensor loss;
  {
    const Autocast autocast;
    const torch::Tensor out = layer(torch::ones({4, 3}));
    EXPECT_EQ(out.scalar_type(), torch::kBFloat16);
    loss = out.to(torch::kFloat).square().mean();
  }
  loss.backward();
  EXPECT_EQ(layer->weight.grad().scalar_type(), torch::kFloat);
  EXPECT_GT(layer->weight.grad().abs().sum().item<double>(), 0);
}

TEST(Autocast, NamesADtypeThatTheDeviceCannotDo) {
  const auto text =
      test::error_text<UsageError>([] { const Autocast autocast({.dtype = torch::kHalf}); });
  EXPECT_THAT(text,
              HasSubstr("[engine.Autocast] the device cpu cannot compute in Half: expected "
                        "BFloat16"));
  EXPECT_FALSE(is_autocast_enabled()) << "nothing was changed";
  EXPECT_THAT(
      test::error_text<UsageError>([] { const Autocast autocast({.dtype = torch::kFloat}); }),
      HasSubstr("cannot compute in Float"));
  EXPECT_THAT(test::error_text<UsageError>([] { const Autocast autocast({.device = at::kXPU}); }),
              HasSubstr("expected the device cpu or cuda, got xpu"));
  if (!torch::cuda::is_available()) {
    EXPECT_THAT(
        test::error_text<UsageError>([] { const Autocast autocast({.device = at::kCUDA}); }),
        HasSubstr("no CUDA device"));
  }
}

}  // namespace
}  // namespace argosy::engine
