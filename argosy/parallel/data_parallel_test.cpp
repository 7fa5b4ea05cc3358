#include "argosy/parallel/data_parallel.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/vision/models/cifar_net.h"
#include "argosy/vision/models/lenet.h"
#include "argosy/vision/models/mnist_cnn.h"
#include "argosy/vision/models/resnet.h"

#include "tests/support/error_text.h"

namespace argosy::parallel {
namespace {

using test::error_text;
using ::testing::HasSubstr;

std::vector<at::Tensor> gradients(const torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& p : module.parameters()) {
    all.push_back(p.grad().defined() ? p.grad().clone() : at::Tensor());
    at::Tensor(p).mutable_grad() = at::Tensor();
  }
  return all;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() ? (a - b).abs().max().item<double>()
                                    : (a.defined() == b.defined() ? 0 : HUGE_VAL);
}

/// Outputs and gradients of `samples` samples equal the module's own.
template <typename M>
void expect_same(
    M module, at::IntArrayRef image, int64_t samples, int64_t replicas, at::ScalarType type) {
  module->to(type);
  module->eval();  // batch norm of a part is not that of the whole
  const double bound = type == at::kDouble ? 1e-12 : 1e-6;
  std::vector<int64_t> shape = {samples};
  shape.insert(shape.end(), image.begin(), image.end());
  const at::Tensor x = torch::randn(shape, type).requires_grad_();
  const at::Tensor alone = module->forward(x);
  const at::Tensor weights = torch::randn_like(alone) / alone.numel();
  (alone * weights).sum().backward();
  const std::vector<at::Tensor> expected = gradients(*module);
  const at::Tensor dx = x.grad().clone();

  DataParallel<M> model(module, {.replicas = replicas});
  for (int repeat = 0; repeat < 2; ++repeat) {
    x.mutable_grad() = at::Tensor();
    const at::Tensor together = model(x);
    (together * weights).sum().backward();
    const std::vector<at::Tensor> got = gradients(*module);
    EXPECT_LE(distance(together, alone), bound * std::max(1.0, alone.abs().max().item<double>()));
    EXPECT_LE(distance(x.grad(), dx), bound);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(distance(got[i], expected[i]),
                bound * std::max(1.0, expected[i].abs().max().item<double>()))
          << samples << " samples, " << replicas << " replicas, parameter " << i;
    }
  }
}

TEST(DataParallel, GradientsAreTheModulesOwn) {
  torch::manual_seed(1);
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    for (const auto& [samples, replicas] :
         {std::pair<int64_t, int64_t>{8, 2}, {7, 3}, {5, 4}, {2, 4}, {1, 3}, {6, 1}}) {
      expect_same(vision::LeNet(), {1, 28, 28}, samples, replicas, type);
    }
    expect_same(vision::CifarNet(), {3, 32, 32}, 5, 2, type);
    expect_same(vision::MnistCnn(), {1, 28, 28}, 5, 2, type);
    expect_same(vision::ResNet({.depth = 18, .num_classes = 7}), {3, 32, 32}, 3, 2, type);
  }
}

TEST(DataParallel, AnEmptyBatchAndOneWithoutGradients) {
  DataParallel model(torch::nn::Linear(3, 2), {.replicas = 3});
  EXPECT_EQ(model(torch::zeros({0, 3})).sizes(), (std::vector<int64_t>{0, 2}));
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(model(torch::ones({6, 3})).requires_grad()) << "threads know of it";
}

TEST(DataParallel, FollowsTheModuleThroughSteps) {
  torch::manual_seed(2);
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::Tanh(), torch::nn::Linear(4, 2));
  net->to(torch::kDouble);
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone());
  DataParallel model(net, {.replicas = 2});
  optim::SGD optimizer(model, {.lr = 0.05});
  optim::SGD other(*twin, {.lr = 0.05});
  for (int step = 0; step < 5; ++step) {
    const at::Tensor x = torch::randn({5, 3}, torch::kDouble);
    const bool frozen = step >= 3;  // a layer is frozen on the way
    net->parameters()[0].set_requires_grad(!frozen);
    twin->parameters()[0].set_requires_grad(!frozen);
    optimizer.zero_grad();
    other.zero_grad();
    model(x).pow(2).sum().backward();
    twin->forward(x).pow(2).sum().backward();
    EXPECT_EQ(net->parameters()[0].grad().defined(), twin->parameters()[0].grad().defined());
    optimizer.step();
    other.step();
  }
  for (size_t i = 0; i < net->parameters().size(); ++i) {
    EXPECT_LE(distance(net->parameters()[i], twin->parameters()[i]), 1e-12) << i;
  }
}

TEST(DataParallel, BuffersAreReplicaZeros) {
  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::BatchNorm1d(3), torch::nn::Dropout(0.5));
  auto half = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone());
  DataParallel model(net, {.replicas = 2});
  const at::Tensor x = torch::randn({8, 3}) + 5;
  (void)model(x);
  (void)half->forward(x.slice(0, 0, 4));
  for (const auto& buffer : net->named_buffers()) {
    EXPECT_TRUE(buffer.value().equal(half->named_buffers()[buffer.key()])) << buffer.key();
  }
  model.eval();  // all replicas: no dropout, and the running statistics that replica 0 has learnt
  EXPECT_LE(distance(model(x), net->forward(x)), 1e-6);
}

TEST(DataParallel, MakingReplicasDrawsNoRandomNumbersAndSharesMemory) {
  vision::LeNet net;
  torch::manual_seed(4);
  const at::Tensor expected = torch::rand({3});
  torch::manual_seed(4);
  const DataParallel model(net, {.replicas = 3});
  EXPECT_TRUE(torch::rand({3}).equal(expected));
  EXPECT_EQ(model.replicas(), 3);
  EXPECT_EQ(DataParallel(net).replicas(), 1) << "on the CPU nothing is assumed";
  Replicas replicas(net.ptr(), {.devices = {at::kCPU, at::kCPU}});
  (void)replicas.run(torch::zeros({2, 1, 28, 28}), [&](size_t i, const at::Tensor& part) {
    return dynamic_cast<vision::LeNetImpl&>(replicas.module(i)).forward(part);
  });
  EXPECT_EQ(replicas.module(1).parameters()[0].data_ptr(), net->parameters()[0].data_ptr());
}

/// Throws for samples of 13, gives too few rows for samples of 7.
struct PickyImpl : torch::nn::Cloneable<PickyImpl> {
  PickyImpl() { reset(); }
  void reset() override { linear = register_module("linear", torch::nn::Linear(1, 1)); }
  at::Tensor forward(const at::Tensor& x) {
    if (x.eq(13).any().item<bool>()) {
      throw std::runtime_error("thirteen");
    }
    return x.eq(7).any().item<bool>() ? linear(x).sum() : linear(x);
  }
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(Picky);

struct UnclonableImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x; }
};

TEST(DataParallel, SaysWhichReplicaFailedAndGoesOn) {
  DataParallel model(Picky(), {.replicas = 3});
  at::Tensor x = torch::ones({7, 1});
  x[4] = 13;
  EXPECT_THAT(
      error_text<Error>([&] { return model(x); }),
      HasSubstr("[parallel.DataParallel] replica 1 of 3 on cpu (samples 3 to 5): thirteen"));
  x[0] = 13;
  EXPECT_THAT(error_text<Error>([&] { return model(x); }), HasSubstr("replica 0 of 3"));
  x.fill_(1);
  EXPECT_EQ(model(x).size(0), 7);
  x[6] = 7;
  EXPECT_THAT(error_text<Error>([&] { return model(x); }),
              HasSubstr("replica 2 of 3 on cpu (samples 6 to 6): expected an output with 1 rows"));
}

template <typename M>
concept CanWrap = requires {
  typename DataParallel<M>;
};

TEST(DataParallel, RefusesWhatItCannotCopy) {
  static_assert(CanWrap<vision::LeNet>);
  static_assert(CanWrap<std::shared_ptr<vision::LeNetImpl>>);
  static_assert(!CanWrap<DistributedDataParallel<vision::LeNet>>);
  static_assert(!CanWrap<DataParallel<vision::LeNet>>);
  EXPECT_THAT(error_text<Error>(
                  [] { return DataParallel(std::make_shared<UnclonableImpl>(), {.replicas = 2}); }),
              HasSubstr("cannot be cloned"));
  EXPECT_THAT(error_text<Error>([] { return DataParallel(vision::LeNet(), {.replicas = -1}); }),
              HasSubstr("replicas must be 0 to"));
  EXPECT_THAT(error_text<Error>([] {
                return DataParallel(vision::LeNet(), {.devices = {at::kCPU}, .replicas = 2});
              }),
              HasSubstr("give devices or replicas"));
  EXPECT_THAT(error_text<Error>([] {
                return DataParallel(vision::LeNet(), {.devices = {at::Device(at::kCUDA, 0)}});
              }),
              HasSubstr("is on cpu, the first device is cuda:0"));
  EXPECT_THAT(error_text<Error>([] { return DataParallel(torch::nn::Linear(1, 1))(at::Tensor()); }),
              HasSubstr("expected a batch"));
}

}  // namespace
}  // namespace argosy::parallel
