#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/vision/models/lenet.h"
#include "argosy/vision/models/mnist_cnn.h"

namespace argosy::vision {
namespace {

namespace F = torch::nn::functional;

struct Inputs {
  at::Tensor images, labels;
};

Inputs inputs(int64_t n) {
  torch::manual_seed(7);
  return {torch::randn({n, 1, 28, 28}), torch::randint(0, 10, {n}, torch::kLong)};
}

std::vector<std::string> names(torch::nn::Module& module) {
  return module.named_parameters().keys();
}

int64_t count(torch::nn::Module& module) {
  int64_t sum = 0;
  for (const at::Tensor& p : module.parameters()) {
    sum += p.numel();
  }
  return sum;
}

TEST(Models, LeNetIsPaddles) {
  LeNet net;
  EXPECT_THAT(names(*net),
              testing::ElementsAre("features.0.weight",
                                   "features.0.bias",
                                   "features.3.weight",
                                   "features.3.bias",
                                   "fc.0.weight",
                                   "fc.0.bias",
                                   "fc.1.weight",
                                   "fc.1.bias",
                                   "fc.2.weight",
                                   "fc.2.bias"));
  EXPECT_EQ(count(*net), 61610);  // what paddle.summary(LeNet(), (1, 1, 28, 28)) prints
  auto p = net->named_parameters();
  const Inputs in = inputs(3);
  at::Tensor x = torch::conv2d(
      in.images, p["features.0.weight"], p["features.0.bias"], /*stride=*/1, /*padding=*/1);
  x = torch::max_pool2d(torch::relu(x), 2);
  x = torch::conv2d(x, p["features.3.weight"], p["features.3.bias"]);
  x = torch::max_pool2d(torch::relu(x), 2).flatten(1);
  for (const char* layer : {"fc.0", "fc.1", "fc.2"}) {
    x = F::linear(x, p[std::string(layer) + ".weight"], p[std::string(layer) + ".bias"]);
  }
  EXPECT_TRUE(torch::equal(net(in.images), x));
}

TEST(Models, LeNetWithoutClassifierGivesFeatures) {
  LeNet net({.num_classes = 0});
  EXPECT_EQ(net(inputs(2).images).sizes(), (std::vector<int64_t>{2, 16, 5, 5}));
  EXPECT_EQ(count(*net), 60 + 2416);
}

TEST(Models, NumClassesSetsTheWidth) {
  EXPECT_EQ(LeNet({.num_classes = 7})(inputs(2).images).sizes(), (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(MnistCnn({.num_classes = 3})(inputs(2).images).sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_THROW(LeNet({.num_classes = -1}), UsageError);
  EXPECT_THROW(MnistCnn({.num_classes = 0}), UsageError);
}

/// The network as its docstring says it, relu before pooling.
at::Tensor plain(MnistCnn& net, const at::Tensor& images) {
  auto p = net->named_parameters();
  at::Tensor x = images;
  for (const std::string i : {"1", "2"}) {
    x = torch::conv2d(x, p["conv" + i + ".weight"], p["conv" + i + ".bias"], 1, 2);
    x = torch::batch_norm(
        x, p["bn" + i + ".weight"], p["bn" + i + ".bias"], {}, {}, true, 0.1, 1e-5, false);
    x = torch::max_pool2d(torch::relu(x), 2);
  }
  return F::linear(x.flatten(1), p["fc.weight"], p["fc.bias"]);
}

/// The loss's gradient for each parameter.
std::vector<at::Tensor> gradients(MnistCnn& net,
                                  const at::Tensor& logits,
                                  const at::Tensor& labels) {
  return torch::autograd::grad({F::cross_entropy(logits, labels)}, net->parameters());
}

Inputs inputs_with_a_blank() {
  Inputs in = inputs(5);
  in.images.select(0, 2).zero_();  // windows whose values are all equal: pooling breaks ties alike
  return in;
}

TEST(Models, MnistCnnHasTheseParameters) {
  MnistCnn net;
  EXPECT_THAT(names(*net),
              testing::ElementsAre("conv1.weight",
                                   "conv1.bias",
                                   "bn1.weight",
                                   "bn1.bias",
                                   "conv2.weight",
                                   "conv2.bias",
                                   "bn2.weight",
                                   "bn2.bias",
                                   "fc.weight",
                                   "fc.bias"));
  EXPECT_EQ(count(*net), 29034);
}

TEST(Models, MnistCnnComputesItsPlainForm) {
  MnistCnn net;
  const Inputs in = inputs_with_a_blank();
  const at::Tensor ours = net(in.images);
  const at::Tensor theirs = plain(net, in.images);
  EXPECT_TRUE(torch::allclose(ours, theirs, 1e-4, 1e-5));
  const auto our_gradients = gradients(net, ours, in.labels);
  const auto their_gradients = gradients(net, theirs, in.labels);
  for (size_t i = 0; i < our_gradients.size(); ++i) {
    // Sums over 5 * 784 terms in another order. conv biases have no gradient before a batch norm.
    EXPECT_TRUE(torch::allclose(our_gradients[i], their_gradients[i], 1e-3, 1e-5))
        << names(*net)[i];
  }
}

TEST(Models, GradientsKeepTheLayoutOfTheirParameters) {
  MnistCnn net;
  const Inputs in = inputs(4);
  F::cross_entropy(net(in.images), in.labels).backward();
  for (const at::Tensor& p : net->parameters()) {
    EXPECT_TRUE(p.is_contiguous() && p.grad().is_contiguous());
  }
}

TEST(Models, AnyStridesOfTheImagesWillDo) {
  MnistCnn net;
  net->eval();
  const at::Tensor images = inputs(6).images;
  const at::Tensor expected = net(images);
  const at::Tensor transposed = images.transpose(2, 3).contiguous().transpose(2, 3);
  const at::Tensor spread = torch::stack({images, images}, 4).select(4, 1);
  for (const at::Tensor& same : {transposed, spread, images.slice(0, 0, 6, 1)}) {
    EXPECT_TRUE(torch::allclose(net(same), expected, 1e-4, 1e-5));
  }
}

TEST(Models, EvaluationUsesRunningStatistics) {
  MnistCnn net;
  const Inputs in = inputs(8);
  EXPECT_EQ(net->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 0);
  static_cast<void>(net(in.images));
  EXPECT_EQ(net->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 1);
  net->eval();
  const at::Tensor whole = net(in.images);
  EXPECT_TRUE(torch::allclose(net(in.images.slice(0, 0, 1)), whole.slice(0, 0, 1), 1e-4, 1e-5));
  EXPECT_EQ(net->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 1);
}

TEST(Models, AnEmptyBatchGivesAnEmptyResult) {
  LeNet net;
  EXPECT_EQ(net(torch::zeros({0, 1, 28, 28})).sizes(), (std::vector<int64_t>{0, 10}));
}

TEST(Models, CloneIsADeepCopy) {
  MnistCnn net;
  auto copy = std::dynamic_pointer_cast<MnistCnnImpl>(net->clone());
  ASSERT_TRUE(copy);
  net->eval();
  copy->eval();
  const Inputs in = inputs(2);
  EXPECT_TRUE(torch::equal(net(in.images), copy->forward(in.images)));
  {
    torch::NoGradGuard no_grad;
    copy->named_parameters()["fc.bias"].add_(1);
  }
  EXPECT_FALSE(torch::equal(net(in.images), copy->forward(in.images)));
}

TEST(Models, AWrongShapeIsNamed) {
  auto message = [](auto net, const at::Tensor& images) -> std::string {
    try {
      static_cast<void>(net(images));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(
      message(LeNet(), torch::zeros({2, 3, 32, 32})),
      "[vision.LeNet] input has the wrong shape: expected [N, 1, 28, 28], got [2, 3, 32, 32]");
  EXPECT_EQ(message(MnistCnn(), torch::zeros({1, 28, 28})),
            "[vision.MnistCnn] input has the wrong shape: expected [N, 1, 28, 28], got "
            "[1, 28, 28]. Use images.unsqueeze(0) for one image");
  EXPECT_THAT(message(MnistCnn(), at::Tensor()), testing::HasSubstr("got an undefined tensor"));
}

TEST(Models, BothLearn) {
  const Inputs in = inputs(32);
  auto final_loss = [&](auto net) {
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    double loss_value = 0;
    for (int step = 0; step < 60; ++step) {
      sgd.zero_grad();
      at::Tensor loss = F::cross_entropy(net(in.images), in.labels);
      loss.backward();
      sgd.step();
      loss_value = loss.template item<double>();
    }
    return loss_value;
  };
  EXPECT_LT(final_loss(MnistCnn()), 0.1);  // ln 10 = 2.3 at the start
  EXPECT_LT(final_loss(LeNet()), 0.5);
}

}  // namespace
}  // namespace argosy::vision
