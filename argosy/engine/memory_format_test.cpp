#include "argosy/engine/memory_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/engine_test_modules.h"

namespace argosy::engine {
namespace {

using small_models::SmallNet;
using ::testing::HasSubstr;

constexpr auto kRows = at::MemoryFormat::Contiguous;
constexpr auto kLast = at::MemoryFormat::ChannelsLast;

TEST(MemoryFormat, HasNames) {
  for (const MemoryFormat each : {MemoryFormat::kAsIs,
                                  MemoryFormat::kAuto,
                                  MemoryFormat::kContiguous,
                                  MemoryFormat::kChannelsLast}) {
    EXPECT_EQ(memory_format(to_string(each)), each);
  }
  EXPECT_EQ(memory_format("nhwc"), std::nullopt);
}

TEST(MemoryFormat, InputsAreConvertedWhereItMeansSomething) {
  const at::Tensor image = torch::rand({2, 3, 4, 5});
  const at::Tensor last = in_format(image, MemoryFormat::kChannelsLast);
  EXPECT_TRUE(last.is_contiguous(kLast));
  EXPECT_TRUE(torch::equal(last, image));
  EXPECT_TRUE(in_format(last, MemoryFormat::kContiguous).is_contiguous(kRows));
  EXPECT_TRUE(in_format(last, MemoryFormat::kChannelsLast).is_same(last));
  EXPECT_TRUE(in_format(image, MemoryFormat::kAsIs).is_same(image));
  for (const at::Tensor& other :
       {torch::rand({3, 4, 5}), torch::ones({2, 3, 4, 5}, torch::kLong), at::Tensor()}) {
    EXPECT_TRUE(in_format(other, MemoryFormat::kChannelsLast).is_same(other));
  }
}

TEST(MemoryFormat, LayingOutKeepsAddressesValuesAndGradients) {
  SmallNet net;
  const at::Tensor weight = net->named_parameters()["features.0.weight"];
  net->forward(torch::rand({2, 3, 5, 5})).sum().backward();
  const at::Tensor before = weight.detach().clone();
  const at::Tensor gradient = weight.grad().clone();
  const void* const address = weight.data_ptr();
  lay_out(*net, MemoryFormat::kChannelsLast);
  EXPECT_TRUE(weight.is_contiguous(kLast));
  EXPECT_EQ(weight.data_ptr(), address);
  EXPECT_TRUE(torch::equal(weight, before));
  EXPECT_TRUE(torch::equal(weight.grad(), gradient));
  EXPECT_TRUE(weight.is_leaf() && weight.requires_grad());
  lay_out(*net, MemoryFormat::kContiguous);
  EXPECT_TRUE(weight.is_contiguous(kRows));
  EXPECT_TRUE(torch::equal(weight, before));
}

TEST(MemoryFormat, AWeightThatAnotherTensorSeesIsLeftAlone) {
  SmallNet net;
  const at::Tensor weight = net->named_parameters()["features.0.weight"];
  const at::Tensor seen = weight.detach().view({-1}).clone();
  const at::Tensor view = weight.detach().view({-1});
  lay_out(*net, MemoryFormat::kChannelsLast);
  EXPECT_TRUE(weight.is_contiguous(kRows));
  EXPECT_TRUE(torch::equal(view, seen));
}

TEST(MemoryFormat, ALayoutIsRestoredWithTheValuesOfNow) {
  SmallNet net;
  at::Tensor weight = net->named_parameters()["features.0.weight"];
  const Layout layout(*net);
  lay_out(*net, MemoryFormat::kChannelsLast);
  {
    const torch::NoGradGuard no_grad;
    weight.mul_(2);
  }
  const at::Tensor now = weight.detach().clone();
  layout.restore();
  EXPECT_EQ(weight.strides(), at::IntArrayRef({27, 9, 3, 1}));
  EXPECT_TRUE(torch::equal(weight, now));
}

TEST(MemoryFormat, AdviceNamesWhatSpeaksAgainst) {
  EXPECT_TRUE(advise_channels_last(*SmallNet()).worth_trying);
  const auto reason = [](const torch::nn::Module& module) {
    const ChannelsLastAdvice advice = advise_channels_last(module);
    EXPECT_FALSE(advice.worth_trying);
    return advice.reason;
  };
  EXPECT_THAT(reason(*torch::nn::Linear(3, 4)), HasSubstr("no 2-d convolution"));
  EXPECT_TRUE(advise_channels_last(*torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).groups(8)))
                  .worth_trying);
  SmallNet doubles;
  doubles->to(torch::kDouble);
  EXPECT_THAT(reason(*doubles), HasSubstr("f32 or 16 bits"));
  SmallNet laid_out;
  lay_out(*laid_out, MemoryFormat::kChannelsLast);
  EXPECT_THAT(reason(*laid_out), HasSubstr("features.0.weight is laid out by the program"));
  SmallNet shared;
  const at::Tensor view = shared->parameters()[0].detach().view({-1});
  EXPECT_THAT(reason(*shared), HasSubstr("shares its memory"));
}

}  // namespace
}  // namespace argosy::engine
