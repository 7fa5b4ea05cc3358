#include "argosy/engine/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/engine_test_modules.h"

#include <nlohmann/json.hpp>

namespace argosy::engine {
namespace {

namespace nn = torch::nn;
using small_models::SmallNet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> layers(const Summary& summary) {
  std::vector<std::string> result;
  for (const SummaryRow& row : summary.rows) {
    result.push_back(row.layer.empty() ? row.type : row.layer + " " + row.type);
  }
  return result;
}

TEST(Summary, NamesLayersShapesParametersAndArithmetic) {
  SmallNet net;  // conv 3→4 3×3 pad 1, batch norm, relu twice, mean, linear 4→2
  const Summary result = summary(net, {2, 3, 6, 5});
  EXPECT_THAT(
      layers(result),
      ElementsAre(
          "features.0 Conv2d", "features.1 BatchNorm2d", "relu", "relu", "mean", "fc Linear"));
  const SummaryRow& conv = result.rows[0];
  EXPECT_THAT(conv.output_shape, ElementsAre(2, 4, 6, 5));
  EXPECT_EQ(conv.parameters, 4 * 3 * 9 + 4);
  EXPECT_EQ(conv.multiply_adds, 2 * 4 * 6 * 5 * 3 * 9);
  EXPECT_EQ(conv.output_bytes, 2 * 4 * 6 * 5 * 4);
  EXPECT_EQ(result.rows[1].parameters, 8);
  EXPECT_EQ(result.rows[1].multiply_adds, 0);
  EXPECT_EQ(result.rows[5].multiply_adds, 2 * 2 * 4);
  EXPECT_EQ(result.parameters, 112 + 8 + 10);
  EXPECT_EQ(result.trainable_parameters, result.parameters);
  EXPECT_EQ(result.parameter_bytes, 130 * 4 + 8 * 4 + 8) << "with statistics and their counter";
  EXPECT_EQ(result.multiply_adds, 6480 + 16);
  EXPECT_EQ(result.input_bytes, 2 * 3 * 6 * 5 * 4);
  EXPECT_EQ(result.output_bytes, 4 * 960 + 32 + 16);
  EXPECT_THAT(result.unused, IsEmpty());
}

TEST(Summary, LayerOutputsAreThoseOfTheLayersThemselves) {
  SmallNet net;
  const at::Tensor x = at::arange(2 * 3 * 6 * 5, at::kFloat).sin().view({2, 3, 6, 5});
  const std::vector<LayerOutput> found = layer_outputs(net, x);
  EXPECT_TRUE(net->is_training());
  net->eval();
  const auto children = net->features->children();
  auto* const conv = children[0]->as<nn::Conv2d>();
  auto* const norm = children[1]->as<nn::BatchNorm2d>();
  const at::Tensor convolved = conv->forward(x);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].layer + " " + found[0].type, "features.0 Conv2d");
  EXPECT_TRUE(found[0].output.equal(convolved));
  EXPECT_EQ(found[1].layer, "features.1");
  EXPECT_TRUE(found[1].output.equal(norm->forward(convolved)));
  EXPECT_EQ(found[2].layer, "fc");
  EXPECT_TRUE(found[2].output.equal(net(x)));
  EXPECT_FALSE(found[2].output.requires_grad());
}

TEST(Summary, LayerCallsAreGivenWhatTheLayerBeforeMade) {
  SmallNet net;
  const at::Tensor x = at::arange(2 * 3 * 6 * 5, at::kFloat).sin().view({2, 3, 6, 5});
  const std::vector<LayerCall> calls = layer_calls(net, [&] { net(x); });
  EXPECT_TRUE(net->is_training());
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_TRUE(calls[0].input.equal(x));
  EXPECT_TRUE(calls[1].input.equal(calls[0].output));
  EXPECT_EQ(calls[2].layer + " " + calls[2].type, "fc Linear");
  net->eval();
  EXPECT_TRUE(calls[2].output.equal(net(x)));
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(calls[2].output.allclose(net->fc->forward(calls[2].input)));
}

TEST(Summary, WhatIsWrittenOverLaterWasCopied) {
  nn::Sequential net(nn::Linear(2, 3), nn::ReLU(nn::ReLUOptions().inplace(true)));
  const at::Tensor x = at::full({1, 2}, -1.5F);
  const std::vector<LayerOutput> found = layer_outputs(net, x);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].output.equal(net->children()[0]->as<nn::Linear>()->forward(x)));
}

TEST(Summary, LeavesTheModelAsItWas) {
  SmallNet net;
  net->train();
  net->features[1]->eval();  // a frozen norm
  const bool grad = torch::GradMode::is_enabled();
  static_cast<void>(summary(net, {1, 3, 4, 4}));
  EXPECT_TRUE(net->is_training());
  EXPECT_TRUE(net->features->is_training());
  EXPECT_TRUE(net->features[0]->is_training());
  EXPECT_FALSE(net->features[1]->is_training());
  EXPECT_TRUE(net->fc->is_training());
  EXPECT_EQ(torch::GradMode::is_enabled(), grad);
  EXPECT_EQ(net->named_buffers()["features.1.num_batches_tracked"].item<int64_t>(), 0);
}

TEST(Summary, AFailingForwardLeavesNothingBehind) {
  SmallNet net;
  EXPECT_ANY_THROW(static_cast<void>(summary(net, {1, 7, 4, 4})));
  EXPECT_TRUE(net->is_training());
  EXPECT_EQ(summary(net, {1, 3, 4, 4}).rows.size(), 6U);
}

/// Multiply-adds of one operator on inputs of these sizes.
int64_t multiply_adds(const std::function<void()>& call) {
  return summary(nn::Identity(), {torch::zeros({1})}, call).multiply_adds;
}

TEST(Summary, CountsProductsAndConvolutionsOfAllKinds) {
  const auto x = [](at::IntArrayRef size) { return torch::zeros(size); };
  EXPECT_EQ(multiply_adds([&] { torch::mm(x({2, 3}), x({3, 5})); }), 30);
  EXPECT_EQ(multiply_adds([&] { torch::matmul(x({7, 2, 3}), x({3, 5})); }), 210);
  EXPECT_EQ(multiply_adds([&] { torch::matmul(x({3}), x({3, 5})); }), 15);
  EXPECT_EQ(multiply_adds([&] { torch::addmm(x({5}), x({2, 3}), x({3, 5})); }), 30);
  EXPECT_EQ(multiply_adds([&] { torch::baddbmm(x({1}), x({4, 2, 3}), x({4, 3, 5})); }), 120);
  EXPECT_EQ(multiply_adds([&] {
              torch::einsum("bij,bjk->bik", {x({4, 2, 3}), x({4, 3, 5})});
            }),
            120);
  EXPECT_EQ(multiply_adds([&] { torch::dot(x({9}), x({9})); }), 9);
  EXPECT_EQ(multiply_adds([&] {
              nn::Conv1d(nn::Conv1dOptions(4, 6, 3))(x({2, 4, 10}));
            }),
            2 * 6 * 8 * 4 * 3);
  EXPECT_EQ(multiply_adds([&] {
              nn::Conv2d(nn::Conv2dOptions(4, 6, 3).groups(2))(x({2, 4, 10, 9}));
            }),
            2 * 6 * 8 * 7 * 2 * 9);
  EXPECT_EQ(multiply_adds([&] {
              nn::Conv3d(nn::Conv3dOptions(1, 2, 2))(x({1, 1, 3, 3, 3}));
            }),
            2 * 8 * 8);
  EXPECT_EQ(multiply_adds([&] {
              nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 6, 3).stride(2))(x({2, 4, 5, 5}));
            }),
            2 * 4 * 25 * 6 * 9);
}

struct TwiceImpl : nn::Module {
  TwiceImpl() {
    once = register_module("once", nn::Linear(4, 4));
    never = register_module("never", nn::Linear(2, 3));
    scale = register_parameter("scale", torch::ones({4}));
    once->bias.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return once(once(x)).mul_(scale); }
  nn::Linear once{nullptr}, never{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(Twice);

TEST(Summary, ALayerThatComesAgainHasItsParametersOnce) {
  const Summary result = summary(Twice(), {3, 4});
  EXPECT_THAT(layers(result), ElementsAre("once Linear", "once Linear", "Twice"));
  EXPECT_EQ(result.rows[0].parameters, 20);
  EXPECT_EQ(result.rows[1].parameters, 0);
  EXPECT_EQ(result.rows[1].multiply_adds, 48);
  EXPECT_EQ(result.rows[2].parameters, 4) << "the model's own";
  EXPECT_EQ(result.rows[2].output_bytes, 0) << "in place";
  ASSERT_EQ(result.unused.size(), 1U);
  EXPECT_EQ(result.unused[0].layer, "never");
  EXPECT_EQ(result.parameters, 20 + 9 + 4);
  EXPECT_EQ(result.trainable_parameters, 20 + 9);
}

TEST(Summary, ParametersInBucketsAreKnown) {
  nn::Sequential net(nn::Linear(4, 4), nn::Linear(4, 4));
  const at::Tensor bucket = torch::rand({64});
  net[0]->as<nn::Linear>()->weight.set_data(bucket.slice(0, 0, 16).view({4, 4}));
  net[1]->as<nn::Linear>()->weight.set_data(bucket.slice(0, 32, 48).view({4, 4}));
  EXPECT_THAT(layers(summary(net, {1, 4})), ElementsAre("0 Linear", "1 Linear"));
}

struct WeightImpl : nn::Module {
  explicit WeightImpl(const at::Tensor& tied) { weight = register_parameter("weight", tied); }
  at::Tensor forward(const at::Tensor& x) { return torch::mm(x, weight); }
  at::Tensor weight;
};
TORCH_MODULE(Weight);

TEST(Summary, TiedParametersCountOnce) {
  const at::Tensor tied = torch::ones({4, 4});
  const Summary result = summary(nn::Sequential(Weight(tied), Weight(tied)), {1, 4});
  EXPECT_EQ(result.parameters, 16);
  EXPECT_EQ(result.parameter_bytes, 64);
  EXPECT_THAT(layers(result), ElementsAre("0 Weight", "0 Weight"));
  EXPECT_THAT(result.unused, IsEmpty());
}

struct HalvesImpl : nn::Module {
  HalvesImpl() { weight = register_parameter("weight", torch::ones({4, 6})); }
  at::Tensor forward(const at::Tensor& x) {
    return torch::linear(x, weight.slice(0, 0, 2)) + torch::linear(x, weight.slice(0, 2, 4));
  }
  at::Tensor weight;
};
TORCH_MODULE(Halves);

TEST(Summary, PartsOfAParameterBelongToIt) {
  EXPECT_THAT(layers(summary(nn::Sequential(Halves()), {3, 6})),
              ElementsAre("0 Halves", "0 Halves", "add"));
}

TEST(Summary, RecurrentLayersAndAttentionAreCounted) {
  const Summary lstm = summary(nn::LSTM(3, 5), {7, 2, 3});
  ASSERT_EQ(lstm.rows.size(), 1U);
  EXPECT_EQ(lstm.rows[0].type, "LSTM");
  EXPECT_THAT(lstm.rows[0].output_shape, ElementsAre(7, 2, 5));
  EXPECT_EQ(lstm.rows[0].parameters, 4 * (15 + 25 + 10));
  EXPECT_EQ(lstm.multiply_adds, 7 * 2 * 4 * (15 + 25));
  nn::MultiheadAttention attention(8, 2);
  const at::Tensor x = torch::zeros({6, 3, 8});  // time, batch, features
  const Summary result = summary(attention, {x}, [&] { attention(x, x, x); });
  EXPECT_EQ(result.multiply_adds, 6 * 3 * 8 * 8 * 4 + 2 * 3 * 6 * 6 * 8);
  EXPECT_EQ(result.parameters, 4 * (64 + 8));
  EXPECT_THAT(result.unused, IsEmpty());
}

TEST(Summary, TakesIntegersAndEverythingThatIsCalled) {
  EXPECT_EQ(summary(nn::Embedding(9, 4), {2, 3}, {.dtype = torch::kLong}).parameters, 36);
  nn::Linear linear(4, 2);
  EXPECT_EQ(summary(*linear, {1, 4}).multiply_adds, 8);
  EXPECT_EQ(summary(linear.ptr(), {1, 4}).multiply_adds, 8);
  EXPECT_EQ(summary(nn::AnyModule(linear), {1, 4}).multiply_adds, 8);
  EXPECT_EQ(summary(nn::Sequential(linear), {1, 4}).multiply_adds, 8);
  EXPECT_EQ(summary(linear, {0, 4}).multiply_adds, 0);
}

TEST(Summary, PrintsATable) {
  nn::Sequential net(nn::Linear(1000, 20), nn::ReLU());
  EXPECT_EQ(
      summary(net, {1, 1000}).to_string(),
      "layer  type    output shape  parameters  multiply-adds  memory\n"
      "0      Linear  [1, 20]           20,020         20,000    80 B\n"
      "       relu    [1, 20]                0              0    80 B\n"
      "\n"
      "parameters     20,020, of which 20,020 are trained\n"
      "multiply-adds  20,000 for an input of [1, 1000]\n"
      "memory         84.2 kB: input 4.0 kB, outputs 160 B, parameters and buffers 80.1 kB\n");
  EXPECT_THAT(summary(Twice(), {3, 4}).to_string(), HasSubstr("never  Linear  not called"));
}

TEST(Summary, IsJson) {
  const auto json = nlohmann::json::parse(summary(Twice(), {3, 4}).to_json());
  EXPECT_EQ(json["parameters"], 33);
  EXPECT_EQ(json["rows"].size(), 3U);
  EXPECT_EQ(json["rows"][0]["layer"], "once");
  EXPECT_EQ(json["rows"][0]["output_shape"], (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(json["unused"][0]["parameters"], 9);
  EXPECT_EQ(json["input_size"], (std::vector<int64_t>{3, 4}));
}

TEST(Summary, WhatCannotBeIsRefused) {
  EXPECT_THROW(static_cast<void>(summary(nn::Linear(4, 2), {-1, 4})), UsageError);
  nn::Linear linear(4, 2);
  EXPECT_THROW(static_cast<void>(summary(linear,
                                         {torch::zeros({1})},
                                         [&] {
                                           static_cast<void>(summary(linear, {1, 4}));
                                         })),
               UsageError);
}

}  // namespace
}  // namespace argosy::engine
