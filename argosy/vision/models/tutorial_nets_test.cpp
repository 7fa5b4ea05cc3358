#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/vision/models/cifar_net.h"
#include "argosy/vision/models/digit_net.h"
#include "argosy/vision/models/face_net.h"

#include "tests/support/error_text.h"

namespace argosy::vision {
namespace {

namespace F = torch::nn::functional;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t weights_in(torch::nn::Module& module) {
  int64_t sum = 0;
  for (const at::Tensor& p : module.parameters()) {
    sum += p.numel();
  }
  return sum;
}

/// Layers by name, from the parameters of a network.
class Layers {
 public:
  explicit Layers(const torch::nn::Module& module) : p_(module.named_parameters()) {}
  at::Tensor conv(const std::string& name, const at::Tensor& x, int64_t padding) {
    return torch::conv2d(x, p_[name + ".weight"], p_[name + ".bias"], 1, padding);
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) {
    return F::linear(x, p_[name + ".weight"], p_[name + ".bias"]);
  }

 private:
  torch::OrderedDict<std::string, at::Tensor> p_;
};

// The two networks as their tutorials write them: relu, then pool.
at::Tensor plain_cifar(const torch::nn::Module& net, const at::Tensor& images) {
  Layers layers(net);
  at::Tensor x = torch::max_pool2d(torch::relu(layers.conv("conv1", images, 0)), 2);
  x = torch::max_pool2d(torch::relu(layers.conv("conv2", x, 0)), 2);
  x = torch::relu(layers.conv("conv3", x, 0)).flatten(1);
  return layers.linear("linear2", torch::relu(layers.linear("linear1", x)));
}

at::Tensor plain_digit(const torch::nn::Module& net, const at::Tensor& images) {
  Layers layers(net);
  at::Tensor x = torch::max_pool2d(torch::relu(layers.conv("conv1", images, 2)), 2);
  x = torch::max_pool2d(torch::relu(layers.conv("conv2", x, 2)), 2);
  return layers.linear("fc", x.flatten(1));
}

/// Values and gradients of every parameter are those of the plain form.
template <typename Net, typename Plain>
void expect_same(Net& net, const Plain& plain, const at::Tensor& images) {
  const at::Tensor labels = torch::randint(0, 10, {images.size(0)}, torch::kLong);
  const at::Tensor ours = net(images);
  const at::Tensor theirs = plain(*net, images);
  EXPECT_TRUE(torch::allclose(ours, theirs, 1e-5, 1e-5));
  const auto our_gradients =
      torch::autograd::grad({F::cross_entropy(ours, labels)}, net->parameters());
  const auto their_gradients =
      torch::autograd::grad({F::cross_entropy(theirs, labels)}, net->parameters());
  const auto names = net->named_parameters().keys();
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(torch::allclose(our_gradients[i], their_gradients[i], 1e-4, 1e-6)) << names[i];
  }
}

TEST(TutorialNets, CifarNetIsTheTutorials) {
  torch::manual_seed(5);
  CifarNet net(10);
  EXPECT_THAT(net->named_parameters().keys(),
              ElementsAre("conv1.weight",
                          "conv1.bias",
                          "conv2.weight",
                          "conv2.bias",
                          "conv3.weight",
                          "conv3.bias",
                          "linear1.weight",
                          "linear1.bias",
                          "linear2.weight",
                          "linear2.bias"));
  EXPECT_EQ(weights_in(*net), 122570);
  at::Tensor images = torch::randn({4, 3, 32, 32});
  images.select(0, 1).zero_();  // windows whose values are all equal
  expect_same(net, plain_cifar, images);
}

TEST(TutorialNets, DigitNetIsTheLessons) {
  torch::manual_seed(6);
  DigitNet net;
  EXPECT_THAT(
      net->named_parameters().keys(),
      ElementsAre(
          "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc.weight", "fc.bias"));
  EXPECT_EQ(weights_in(*net), 20350);
  at::Tensor images = torch::randn({4, 1, 28, 28});
  images.select(0, 1).zero_();
  expect_same(net, plain_digit, images);
}

TEST(TutorialNets, FaceNetIsAResNetWithTwoLayersBehindIt) {
  torch::manual_seed(7);
  FaceNet net(15);
  EXPECT_EQ(weights_in(*net), 12'217'414);
  auto p = net->named_parameters();
  EXPECT_EQ(p["backbone.fc.weight"].sizes(), (at::IntArrayRef{1000, 512}));
  EXPECT_EQ(p["outLayer1.0.weight"].sizes(), (at::IntArrayRef{512, 1000}));
  EXPECT_EQ(p["outLayer2.bias"].sizes(), (at::IntArrayRef{30}));
  const at::Tensor images = torch::randn({2, 3, 96, 96});
  const torch::NoGradGuard no_grad;
  const at::Tensor trained = net(images);
  EXPECT_FALSE(torch::equal(trained, net(images))) << "dropout draws while training";
  net->eval();
  Layers layers(*net);
  auto backbone = net->named_children()["backbone"]->as<ResNetImpl>();
  at::Tensor x = torch::relu(layers.linear("outLayer1.0", backbone->forward(images)));
  EXPECT_TRUE(torch::allclose(net(images), layers.linear("outLayer2", x), 1e-5, 1e-6));
}

TEST(TutorialNets, ImagesOfOtherStridesGiveTheSame) {
  torch::manual_seed(8);
  CifarNet net(10);
  net->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor images = torch::randn({3, 3, 32, 32});
  const at::Tensor last = images.contiguous(torch::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(torch::equal(net(images), net(last)));
  at::Tensor wide = torch::zeros({3, 3, 32, 64});
  wide.slice(3, 0, 64, 2).copy_(images);
  EXPECT_TRUE(torch::equal(net(images), net(wide.slice(3, 0, 64, 2))));
}

TEST(TutorialNets, TheNumberSetsTheWidthOfTheLastLayer) {
  EXPECT_EQ(CifarNet(3)(torch::zeros({2, 3, 32, 32})).sizes(), (at::IntArrayRef{2, 3}));
  EXPECT_EQ(CifarNet({.num_classes = 4})(torch::zeros({0, 3, 32, 32})).sizes(),
            (at::IntArrayRef{0, 4}));
  EXPECT_EQ(DigitNet(5)(torch::zeros({2, 1, 28, 28})).sizes(), (at::IntArrayRef{2, 5}));
  FaceNet faces({.num_keypoints = 4});
  EXPECT_EQ(faces(torch::zeros({2, 3, 64, 64})).sizes(), (at::IntArrayRef{2, 8}));
}

TEST(TutorialNets, CopiesAreOfTheirOwn) {
  FaceNet net(2);
  const auto copy = std::dynamic_pointer_cast<FaceNetImpl>(net->clone());
  ASSERT_NE(copy, nullptr);
  auto theirs = copy->named_parameters();
  for (const auto& item : net->named_parameters()) {
    ASSERT_TRUE(torch::equal(item.value(), theirs[item.key()])) << item.key();
    ASSERT_NE(item.value().data_ptr(), theirs[item.key()].data_ptr()) << item.key();
  }
}

TEST(TutorialNets, WhatCannotBeIsRefused) {
  EXPECT_THROW(CifarNet(0), UsageError);
  EXPECT_THROW(DigitNet(-1), UsageError);
  EXPECT_THAT(test::error_text<UsageError>([] { (void)FaceNet(0); }),
              HasSubstr("[vision.FaceNet] num_keypoints must be positive, got 0"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                (void)CifarNet(10)(torch::zeros({2, 3, 28, 28}));
              }),
              HasSubstr("[vision.CifarNet] input has the wrong shape: expected [N, 3, 32, 32], got "
                        "[2, 3, 28, 28]"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                (void)DigitNet()(torch::zeros({1, 28, 28}));
              }),
              HasSubstr("Use images.unsqueeze(0) for one image"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                (void)FaceNet(1)(torch::zeros({2, 1, 96, 96}));
              }),
              HasSubstr("expected [N, 3, H, W], got [2, 1, 96, 96]"));
}

TEST(TutorialNets, BothLearn) {
  torch::manual_seed(9);
  const at::Tensor labels = torch::randint(0, 10, {32}, torch::kLong);
  auto final_loss = [&](auto net, const at::Tensor& images) {
    torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(2e-3));
    double loss_value = 0;
    for (int step = 0; step < 60; ++step) {
      adam.zero_grad();
      at::Tensor loss = F::cross_entropy(net(images), labels);
      loss.backward();
      adam.step();
      loss_value = loss.template item<double>();
    }
    return loss_value;
  };
  EXPECT_LT(final_loss(DigitNet(), torch::randn({32, 1, 28, 28})), 0.2);  // ln 10 = 2.3 first
  EXPECT_LT(final_loss(CifarNet(10), torch::randn({32, 3, 32, 32})), 0.5);
}

}  // namespace
}  // namespace argosy::vision
