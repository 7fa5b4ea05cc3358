#include "argosy/vision/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::vision {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ResNet, HasTorchvisionsNames) {
  ResNet net;
  const auto names = net->named_parameters().keys();
  EXPECT_EQ(names.size(), 62U);
  EXPECT_EQ(names[0], "conv1.weight");
  EXPECT_EQ(names[3], "layer1.0.conv1.weight");
  for (const char* name : {"layer2.0.downsample.0.weight",
                           "layer2.0.downsample.1.bias",
                           "layer4.1.bn2.weight",
                           "fc.bias"}) {
    EXPECT_THAT(names, Contains(name));
  }
  ResNet deep({.depth = 50});
  const auto deep_names = deep->named_parameters().keys();
  EXPECT_THAT(deep_names, Contains("layer1.0.downsample.0.weight"));
  EXPECT_THAT(deep_names, Contains("layer3.5.conv3.weight"));
  EXPECT_THAT(deep->named_buffers().keys(), Contains("layer4.2.bn3.running_var"));
}

/// The arithmetic of a network of depth 18, written out with functions.
class ByHand {
 public:
  explicit ByHand(ResNet& net) : p_(net->named_parameters()), b_(net->named_buffers()) {}

  at::Tensor operator()(const at::Tensor& images) {
    at::Tensor x = torch::relu(norm("bn1", torch::conv2d(images, p_["conv1.weight"], {}, 2, 3)));
    x = torch::max_pool2d(x, 3, 2, 1);
    for (int layer = 1; layer <= 4; ++layer) {
      for (int i = 0; i < 2; ++i) {
        const std::string at = "layer" + std::to_string(layer) + "." + std::to_string(i) + ".";
        const int64_t stride = layer > 1 && i == 0 ? 2 : 1;
        at::Tensor y = norm(at + "bn1", torch::conv2d(x, p_[at + "conv1.weight"], {}, stride, 1));
        y = torch::conv2d(torch::relu(y), p_[at + "conv2.weight"], {}, 1, 1);
        y = norm(at + "bn2", y);
        if (stride == 2) {
          x = torch::conv2d(x, p_[at + "downsample.0.weight"], {}, 2);
          x = norm(at + "downsample.1", x);
        }
        x = torch::relu(y + x);
      }
    }
    x = x.mean({2, 3});
    return torch::addmm(p_["fc.bias"], x, p_["fc.weight"].t());
  }

 private:
  at::Tensor norm(const std::string& name, const at::Tensor& x) {
    return torch::batch_norm(x,
                             p_[name + ".weight"],
                             p_[name + ".bias"],
                             b_[name + ".running_mean"],
                             b_[name + ".running_var"],
                             /*training=*/false,
                             0.1,
                             1e-5,
                             false);
  }
  torch::OrderedDict<std::string, at::Tensor> p_, b_;
};

TEST(ResNet, ComputesWhatItsLayersSay) {
  torch::manual_seed(3);
  ResNet net({.num_classes = 7});
  net->eval();
  const at::Tensor images = torch::randn({2, 3, 65, 80});
  const torch::NoGradGuard no_grad;
  const at::Tensor out = net(images);
  EXPECT_EQ(out.sizes(), (at::IntArrayRef{2, 7}));
  EXPECT_TRUE(torch::allclose(out, ByHand(net)(images), 1e-4, 1e-4));
}

TEST(ResNet, GradientsReachEveryParameterOfADeepOne) {
  torch::manual_seed(3);
  ResNet net({.depth = 50, .num_classes = 5});
  net(torch::randn({2, 3, 64, 64})).square().sum().backward();
  for (const auto& item : net->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
  }
}

TEST(ResNet, IsInitialisedAsTorchvisions) {
  torch::manual_seed(1);
  ResNet net({.zero_init_residual = true});
  auto p = net->named_parameters();
  // Normal, with a deviation of sqrt(2 / (64 · 49)).
  EXPECT_NEAR(p["conv1.weight"].std().item<double>(), 0.02526, 0.0005);
  EXPECT_NEAR(p["layer4.1.conv2.weight"].std().item<double>(), 0.02083, 0.0001);
  EXPECT_TRUE(p["bn1.weight"].eq(1).all().item<bool>());
  EXPECT_TRUE(p["layer2.1.bn2.weight"].eq(0).all().item<bool>());
  EXPECT_TRUE(p["layer2.1.bn1.weight"].eq(1).all().item<bool>());
}

TEST(ResNet, CopiesAreOfTheirOwn) {
  ResNet net({.num_classes = 3});
  const auto copy = std::dynamic_pointer_cast<ResNetImpl>(net->clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(
      torch::equal(copy->named_parameters()["fc.weight"], net->named_parameters()["fc.weight"]));
  const torch::NoGradGuard no_grad;
  copy->named_parameters()["layer1.0.conv1.weight"].zero_();
  EXPECT_FALSE(net->named_parameters()["layer1.0.conv1.weight"].eq(0).all().item<bool>());
}

/// Not with those that it was made with.
TEST(ResNet, ACopyComputesWithItsOwnWeights) {
  ResNet net({.num_classes = 3});
  const auto copy = std::dynamic_pointer_cast<ResNetImpl>(net->clone());
  const torch::NoGradGuard no_grad;
  net->eval();
  copy->eval();
  const at::Tensor x = torch::randn({2, 3, 32, 32});
  const at::Tensor expected = net->forward(x);
  EXPECT_TRUE(torch::equal(copy->forward(x), expected));
  for (auto& item : copy->named_parameters()) {
    const at::Tensor before = item.value().clone();
    item.value().add_(0.5);
    EXPECT_FALSE(torch::equal(copy->forward(x), expected)) << item.key();
    item.value().copy_(before);
  }
}

TEST(ResNet, GroupsAndWidthsShapeTheMiddleOfABottleneck) {
  auto p = ResNet({.depth = 50, .num_classes = 3, .groups = 4, .width_per_group = 24})
               ->named_parameters();
  EXPECT_EQ(p["layer1.0.conv1.weight"].sizes(), (at::IntArrayRef{96, 64, 1, 1}));
  EXPECT_EQ(p["layer1.0.conv2.weight"].sizes(), (at::IntArrayRef{96, 24, 3, 3}));
  EXPECT_EQ(p["layer1.0.conv3.weight"].sizes(), (at::IntArrayRef{256, 96, 1, 1}));
  EXPECT_EQ(p["layer4.2.bn2.weight"].sizes(), (at::IntArrayRef{768}));
  ResNet gray = resnet34({.num_classes = 10, .in_channels = 1});
  EXPECT_EQ(gray->named_parameters()["conv1.weight"].sizes(), (at::IntArrayRef{64, 1, 7, 7}));
  EXPECT_EQ(gray->named_parameters()["fc.bias"].numel(), 10);
}

TEST(ResNet, WhatCannotBeIsRefused) {
  EXPECT_THAT(test::error_text<UsageError>([] { (void)ResNet({.depth = 20}); }),
              HasSubstr("depth must be 18, 34, 50, 101 or 152, got 20"));
  EXPECT_THAT(test::error_text<UsageError>([] { (void)ResNet({.num_classes = 0}); }),
              HasSubstr("num_classes must be positive"));
  EXPECT_THAT(test::error_text<UsageError>([] { (void)ResNet({.groups = 32}); }),
              HasSubstr("depth 18 has no groups and a width of 64, got groups 32"));
  EXPECT_THAT(
      test::error_text<UsageError>([] { (void)ResNet({.depth = 34, .width_per_group = 128}); }),
      HasSubstr("got groups 1 and width_per_group 128"));
  EXPECT_THAT(test::error_text<UsageError>([] { (void)ResNet({.depth = 50, .groups = 0}); }),
              HasSubstr("must be positive, got 0 and 64"));
  ResNet net({.num_classes = 2});
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)net(torch::zeros({1, 1, 64, 64}));
              }),
              HasSubstr("expected [N, 3, H, W], got [1, 1, 64, 64]"));
}

}  // namespace
}  // namespace argosy::vision
