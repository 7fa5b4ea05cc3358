#include "argosy/optim/optimizer.h"

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_parameters;
using testing::same_bits;
using testing::set_gradients;

torch::Tensor leaf(torch::IntArrayRef shape, torch::ScalarType dtype = torch::kFloat) {
  return torch::ones(shape, torch::TensorOptions(dtype).requires_grad(true));
}

TEST(Optimizer, SameBitsWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const NamedTensors one = make_parameters(torch::kFloat), two = clone(one);
  Adam first(one, {.grad_clip = ClipGradByGlobalNorm(0.1)});
  Adam second(two, {.grad_clip = ClipGradByGlobalNorm(0.1)});
  for (int step = 0; step < 5; ++step) {
    set_gradients(one, step);
    set_gradients(two, step);
    at::set_num_threads(1);
    first.step();
    at::set_num_threads(2);
    second.step();
  }
  at::set_num_threads(before);
  EXPECT_TRUE(same_bits(one, two));
}

TEST(Optimizer, TakesWhateverHasParameters) {
  torch::nn::Linear linear(3, 2);
  EXPECT_EQ(SGD(linear).parameters()[0].first, "weight");
  EXPECT_EQ(SGD(linear.ptr()).parameters().size(), 2U);
  EXPECT_EQ(Momentum(*linear).parameters().size(), 2U);
  EXPECT_EQ(Adam(linear, {.lr = 0.5}).lr(), 0.5);
  EXPECT_EQ(AdamW(linear->named_parameters()).parameters()[1].first, "bias");
}

TEST(Optimizer, CopiesAreTheSameOptimizer) {
  torch::nn::Linear linear(3, 2);
  Adam adam(linear, {.lr = 0.5});
  Optimizer copy = adam;
  copy.set_lr(0.25);
  EXPECT_EQ(adam.lr(), 0.25);
}

TEST(Optimizer, SkipsWhatHasNoGradientOrWantsNone) {
  torch::Tensor used = leaf({2}), unused = leaf({2}), frozen = leaf({2});
  SGD sgd(NamedTensors{{"used", used}, {"unused", unused}, {"frozen", frozen}}, {.lr = 1});
  used.mutable_grad() = torch::ones({2});
  frozen.mutable_grad() = torch::ones({2});
  frozen.requires_grad_(false);
  sgd.step();
  EXPECT_EQ(used.sum().item<float>(), 0);
  EXPECT_EQ(unused.sum().item<float>(), 2);
  EXPECT_EQ(frozen.sum().item<float>(), 2);
}

TEST(Optimizer, TiedWeightsAreUpdatedOnce) {
  torch::Tensor shared = leaf({2});
  SGD sgd(NamedTensors{{"embed", shared}, {"head", shared}}, {.lr = 1});
  shared.mutable_grad() = torch::ones({2});
  sgd.step();
  EXPECT_EQ(shared.sum().item<float>(), 0);
  EXPECT_EQ(sgd.parameters().size(), 1U);
  EXPECT_EQ(sgd.parameters()[0].first, "embed");
}

TEST(Optimizer, HandlesAnyMemoryLayout) {
  // Gradients in another order than their parameters, and a parameter with gaps.
  const torch::Tensor base = torch::randn({4, 6, 3, 3}), wide = torch::randn({5, 8});
  torch::Tensor last = base.contiguous(torch::MemoryFormat::ChannelsLast).requires_grad_(true);
  torch::Tensor plain = base.clone().requires_grad_(true);
  const torch::Tensor memory = wide.clone();
  torch::Tensor gaps = memory.slice(1, 0, 3).detach().requires_grad_(true);
  torch::Tensor dense = wide.slice(1, 0, 3).clone().requires_grad_(true);
  Adam odd(NamedTensors{{"a", last}, {"b", gaps}}), even(NamedTensors{{"a", plain}, {"b", dense}});
  for (int step = 0; step < 3; ++step) {
    const torch::Tensor grad = torch::randn({4, 6, 3, 3}), small = torch::randn({5, 3});
    last.mutable_grad() = plain.mutable_grad() = grad;
    gaps.mutable_grad() = small.t().contiguous().t();
    dense.mutable_grad() = small;
    odd.step();
    even.step();
  }
  EXPECT_TRUE(torch::equal(last, plain));
  EXPECT_TRUE(torch::equal(gaps, dense));
  EXPECT_FALSE(torch::equal(plain, base));
  EXPECT_TRUE(torch::equal(memory.slice(1, 3, 8), wide.slice(1, 3, 8))) << "beside the parameter";
}

TEST(Optimizer, StateFollowsAChangeOfLayout) {
  const torch::Tensor base = torch::randn({4, 6, 3, 3});
  torch::Tensor moved = base.clone().requires_grad_(true), kept = base.clone().requires_grad_(true);
  Adam first(NamedTensors{{"w", moved}}), second(NamedTensors{{"w", kept}});
  for (int step = 0; step < 4; ++step) {
    moved.mutable_grad() = kept.mutable_grad() = torch::randn({4, 6, 3, 3});
    first.step();
    second.step();
    moved.set_data(moved.detach().contiguous(torch::MemoryFormat::ChannelsLast));
  }
  EXPECT_TRUE(torch::equal(moved, kept));
}

TEST(Optimizer, AutogradSeesTheUpdate) {
  torch::Tensor w = leaf({2});
  SGD sgd(NamedTensors{{"w", w}}, {.lr = 1});
  const torch::Tensor loss = (w * w).sum();  // keeps w for backward
  w.mutable_grad() = torch::ones({2});
  sgd.step();
  EXPECT_THROW(loss.backward(), c10::Error) << "w changed in place after it was saved";
}

TEST(ZeroGrad, WritesZerosInPlaceIntoViewsOfABucket) {
  torch::Tensor bucket = torch::ones({10});
  torch::Tensor a = leaf({2, 2}), b = leaf({3});
  a.mutable_grad() = bucket.slice(0, 0, 4).view({2, 2});
  b.mutable_grad() = bucket.slice(0, 4, 7);
  Adam adam(NamedTensors{{"a", a}, {"b", b}});
  const void* address = a.grad().data_ptr();
  adam.zero_grad({.set_to_none = false});
  EXPECT_EQ(a.grad().data_ptr(), address);
  EXPECT_EQ(bucket.slice(0, 0, 7).abs().sum().item<float>(), 0);
  EXPECT_EQ(bucket.slice(0, 7, 10).sum().item<float>(), 3) << "beside the gradients";
  adam.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(ZeroGrad, CutsTheGraphOfADoubleBackward) {
  torch::Tensor w = leaf({2});
  SGD sgd(NamedTensors{{"w", w}});
  (w * w).sum().backward({}, true, /*create_graph=*/true);
  ASSERT_TRUE(w.grad().requires_grad());
  sgd.zero_grad({.set_to_none = false});
  EXPECT_FALSE(w.grad().requires_grad());
  EXPECT_EQ(w.grad().sum().item<float>(), 0);
  w.mutable_grad() = torch::Tensor();  // libtorch's cycle of w, its gradient and the graph
}

TEST(Groups, HaveTheirOwnRatesAndDecay) {
  torch::Tensor weight = leaf({2}), bias = leaf({2}), head = leaf({2});
  SGD sgd(NamedTensors{{"fc.weight", weight}, {"fc.bias", bias}, {"head.weight", head}},
          {.lr = 0.1, .weight_decay = L2Decay(1)},
          {{.names = {"*.bias"}, .weight_decay = 0.0},
           {.params = {head}, .lr_scale = 2, .weight_decay = L1Decay(0.5)}});
  ASSERT_EQ(sgd.param_groups().size(), 3U);
  EXPECT_THAT(sgd.param_groups()[0].names, ElementsAre("fc.weight"));
  EXPECT_THAT(sgd.param_groups()[1].names, ElementsAre("fc.bias"));
  EXPECT_THAT(sgd.param_groups()[2].names, ElementsAre("head.weight"));
  for (const torch::Tensor& tensor : {weight, bias, head}) {
    tensor.mutable_grad() = torch::ones({2});
  }
  sgd.step();
  EXPECT_FLOAT_EQ(weight[0].item<float>(), 1 - 0.1 * (1 + 1));
  EXPECT_FLOAT_EQ(bias[0].item<float>(), 1 - 0.1);
  EXPECT_FLOAT_EQ(head[0].item<float>(), 1 - 0.2 * (1 + 0.5));
  sgd.set_lr(1);
  EXPECT_EQ(sgd.param_groups()[2].lr, 2);
}

TEST(Groups, CanBeAddedLater) {
  torch::Tensor a = leaf({1}), b = leaf({1});
  SGD sgd(NamedTensors{{"a", a}}, {.lr = 0.5});
  sgd.add_param_group(NamedTensors{{"b", b}}, {.lr = 1.0});
  a.mutable_grad() = b.mutable_grad() = torch::ones({1});
  sgd.step();
  EXPECT_EQ(a.item<float>(), 0.5);
  EXPECT_EQ(b.item<float>(), 0);
  EXPECT_THAT(test::error_text<UsageError>([&] {
                sgd.add_param_group(NamedTensors{{"a", leaf({1})}});
              }),
              HasSubstr("[optim.SGD] a: two parameters have this name"));
  EXPECT_EQ(sgd.param_groups().size(), 2U) << "a refused group must leave nothing behind";
}

TEST(Groups, MistakesAreNamed) {
  torch::nn::Linear linear(3, 2);
  const auto error = [&](const std::vector<ParamGroup>& groups) {
    return test::error_text<UsageError>([&] { SGD(linear, {}, groups); });
  };
  EXPECT_THAT(error({{.names = {"*.bias"}}}),
              HasSubstr("group 1: no parameter matches \"*.bias\""));
  EXPECT_THAT(error({{.names = {"bias"}}, {.names = {"b*"}}}),
              HasSubstr("bias: groups 1 and 2 both claim this parameter"));
  EXPECT_THAT(error({{.params = {leaf({1})}}}), HasSubstr("no parameter is params[0]"));
  EXPECT_THAT(error({{.lr = 0.1}}), HasSubstr("group 1 names no parameters"));
  EXPECT_THAT(error({{.names = {"bias"}, .lr = 0.1, .lr_scale = 2}}), HasSubstr("not both"));
}

TEST(Errors, NameTheParameterOrTheOption) {
  const auto adam = [](torch::Tensor tensor, AdamOptions options = {}) {
    return test::error_text<UsageError>([&] { Adam(NamedTensors{{"w", tensor}}, options); });
  };
  EXPECT_THAT(adam(leaf({1}, torch::kBFloat16)), HasSubstr("[optim.Adam] w: expected f32 or f64"));
  EXPECT_THAT(adam(leaf({1}, torch::kComplexFloat)), HasSubstr("got ComplexFloat"));
  EXPECT_THAT(adam(torch::Tensor()), HasSubstr("w: the parameter is undefined"));
  EXPECT_THAT(adam(leaf({1}) * 2), HasSubstr("w: expected a leaf tensor"));
  EXPECT_THAT(adam(leaf({1}), {.lr = -1}), HasSubstr("lr must be a number >= 0, got -1"));
  EXPECT_THAT(adam(leaf({1}), {.betas = {0.9, 1.0}}), HasSubstr("betas[1] must be in [0, 1)"));
  EXPECT_THAT(adam(leaf({1}), {.eps = -1}), HasSubstr("eps must be"));
  EXPECT_THAT(adam(leaf({1}), {.weight_decay = -1.0}), HasSubstr("weight_decay must be"));
  EXPECT_THAT(adam(leaf({1}), {.grad_clip = ClipGradByNorm(0)}),
              HasSubstr("clip_norm must be > 0"));
  EXPECT_THAT(test::error_text<UsageError>([] { SGD(NamedTensors{}); }),
              HasSubstr("there are no parameters"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                SGD(NamedTensors{{"w", leaf({1})}}, {.nesterov = true});
              }),
              HasSubstr("nesterov wants momentum > 0"));
  EXPECT_THAT(
      test::error_text<UsageError>([] {
        AdamW(NamedTensors{{"w", leaf({1})}}, {}, {{.names = {"w"}, .weight_decay = L1Decay(1)}});
      }),
      HasSubstr("Use Adam for L1Decay"));
}

TEST(Errors, ARefusedGradientChangesNothing) {
  torch::Tensor first = leaf({2}), second = leaf({2, 2});
  SGD sgd(NamedTensors{{"first", first}, {"embed.weight", second}}, {.lr = 1, .momentum = 0.9});
  first.mutable_grad() = torch::ones({2});
  second.mutable_grad() = torch::ones({2, 2}).to_sparse();
  EXPECT_THAT(
      test::error_text<UsageError>([&] { sgd.step(); }),
      HasSubstr("[optim.SGD] embed.weight.grad: expected a dense tensor, got a sparse one"));
  EXPECT_EQ(first.sum().item<float>(), 2);
  EXPECT_TRUE(sgd.state_dict().parameters.empty());
}

}  // namespace
}  // namespace argosy::optim
