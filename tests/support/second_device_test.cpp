/// The device that other tests lean on: that it computes as the CPU does, and catches what a GPU
/// would.
#include "tests/support/second_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace argosy::test {
namespace {

class SecondDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_second_device()) {
      GTEST_SKIP() << "no second device with this libtorch";
    }
  }
};
using SecondDeviceDeathTest = SecondDevice;

/// Convolution, pooling, norm, dropout, loss, and gradients of all.
std::vector<at::Tensor> train_once(at::Device device) {
  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Conv2d(2, 4, 3),
                            torch::nn::BatchNorm2d(4),
                            torch::nn::ReLU(),
                            torch::nn::MaxPool2d(2),
                            torch::nn::Dropout(0.3),
                            torch::nn::Flatten(),
                            torch::nn::Linear(4 * 3 * 3, 5));
  const at::Tensor x = torch::randn({6, 2, 8, 8});
  net->to(device);
  const at::Tensor out = net->forward(x.to(device));
  const at::Tensor labels = torch::arange(6, at::kLong).remainder(5).to(device);
  torch::nn::functional::cross_entropy(out, labels).backward();
  std::vector<at::Tensor> all{out.detach().cpu()};
  for (const at::Tensor& p : net->parameters()) {
    EXPECT_EQ(p.grad().device(), p.device());
    all.push_back(p.grad().cpu());
  }
  for (const at::Tensor& b : net->buffers()) {
    all.push_back(b.cpu());
  }
  return all;
}

TEST_F(SecondDevice, TrainsAsTheCpuToTheBit) {
  const auto there = train_once(second_device(1));
  const auto here = train_once(at::kCPU);
  ASSERT_EQ(there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(there[i].equal(here[i])) << i;
  }
}

TEST_F(SecondDevice, ViewsInPlaceScalarsListsAndResizing) {
  const at::Device there = second_device();
  at::Tensor t = at::arange(6, at::TensorOptions(at::kFloat).device(there)).view({2, 3});
  t.select(0, 1).mul_(2);
  t.t().select(0, 0).add_(at::tensor(10.F).to(there));
  EXPECT_TRUE(t.cpu().equal(at::tensor({10.F, 1.F, 2.F, 16.F, 8.F, 10.F}).view({2, 3})));
  const at::Tensor twice = at::mul(at::scalar_tensor(2), t);
  EXPECT_EQ(twice.device(), there);
  EXPECT_EQ(twice.sum().item<float>(), 94);
  EXPECT_TRUE(at::cat({t, twice}).cpu().equal(at::cat({t.cpu(), twice.cpu()})));
  EXPECT_TRUE(t.index({torch::tensor({1, 0})}).cpu().equal(t.cpu().flip(0)));
  at::Tensor out = at::empty({0}, t.options());
  at::add_out(out, t, t);
  EXPECT_TRUE(out.equal(twice));
  std::vector<at::Tensor> list{t, twice};
  at::_foreach_add_(list, 1);
  EXPECT_EQ(t[0][0].item<float>(), 11);
  EXPECT_TRUE(at::isnan(at::empty({4}, t.options())).all().item<bool>()) << "never zero by luck";
}

TEST_F(SecondDevice, DevicesDoNotMix) {
  const at::Tensor a = at::ones({2}, second_device(0));
  EXPECT_THROW((void)(a + at::ones({2}, second_device(1))), c10::Error);
  EXPECT_THROW((void)(a + at::ones({2})), c10::Error);
  EXPECT_TRUE(a.to(second_device(1)).cpu().equal(at::ones({2})));
  EXPECT_THROW((void)at::ones({2}, second_device(kSecondDevices)), c10::Error);
}

TEST_F(SecondDevice, ItsMemoryIsNotTheHosts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const at::Tensor t = at::ones({2}, second_device());
  EXPECT_DEATH((void)(*static_cast<volatile float*>(t.data_ptr())), "");
}

}  // namespace
}  // namespace argosy::test
