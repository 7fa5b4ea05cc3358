/// The norms of vision's models with what follows them: one operator on CUDA, in kernels of our
/// own.
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/memory_format.h"
#include "argosy/vision/models/resnet.h"
#include "argosy/vision/ops/norm_relu.h"
#include "argosy/vision/ops/norm_relu_device.h"

#include "tests/support/on_devices.h"

namespace argosy::vision {
namespace {

constexpr auto kLast = at::MemoryFormat::ChannelsLast;

class NormsOnDevices : public test::OnDevices {
 protected:
  struct Case {
    at::ScalarType type;
    int64_t images, channels, side;
    bool residual;
  };
  struct Results {
    at::Tensor y{};
    std::vector<at::Tensor> others{};  ///< gradients and running statistics
    double batches = 0;                ///< that the norm has counted
  };

  /// One training step of a norm and relu, of the same numbers in f64 if that is `type`.
  template <typename Operator>
  Results step(const Case& of, at::ScalarType type, Operator apply) const {
    torch::manual_seed(11);
    torch::nn::BatchNorm2d norm(of.channels);
    {
      const torch::NoGradGuard no_grad;
      norm->weight.copy_(at::linspace(-1, 1, of.channels));
      norm->bias.copy_(at::linspace(-0.3, 0.4, of.channels));
    }
    norm->to(device(), type == at::kDouble ? at::kDouble : at::kFloat);
    const auto some = [&] {
      return at::randn({of.images, of.channels, of.side, of.side})
          .to(of.type)
          .to(device(), type)
          .contiguous(kLast)
          .requires_grad_();
    };
    const at::Tensor x = some(), residual = some(), dy = some().detach();
    const at::Tensor y = apply(norm, x, of.residual ? residual : at::Tensor());
    y.backward(dy);
    Results out{
        y.detach(),
        {x.grad(), norm->weight.grad(), norm->bias.grad(), norm->running_mean, norm->running_var},
        norm->num_batches_tracked.item<double>()};
    if (of.residual) {
      out.others.push_back(residual.grad());
    }
    return out;
  }
  static at::Tensor fused(const torch::nn::BatchNorm2d& norm,
                          const at::Tensor& x,
                          const at::Tensor& residual) {
    return residual.defined() ? ops::norm_add_relu(norm, x, residual) : ops::norm_relu(norm, x);
  }
  static at::Tensor one_by_one(torch::nn::BatchNorm2d norm,
                               const at::Tensor& x,
                               const at::Tensor& residual) {
    const at::Tensor normed = norm(x);
    return (residual.defined() ? normed + residual : normed).relu();
  }
  static void expect_near(const at::Tensor& a, const at::Tensor& b, double part, const char* what) {
    const at::Tensor wide_a = a.to(at::kDouble), wide_b = b.to(at::kDouble);
    const double largest = wide_b.abs().max().item<double>();
    EXPECT_LE((wide_a - wide_b).abs().max().item<double>(), part * largest) << what;  // nor NaN
  }
  /// The losses of steps on eight images.
  [[nodiscard]] std::vector<double> losses_of(ResNet net,
                                              at::MemoryFormat format,
                                              int steps) const {
    torch::optim::SGD optimizer(net->parameters(), 0.05);
    torch::manual_seed(2);
    const at::Tensor x = at::randn({8, 3, 64, 64}).to(device()).contiguous(format);
    const at::Tensor labels = at::arange(8, at::kLong).to(device());
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      const at::Tensor loss = at::cross_entropy_loss(net(x), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
    return losses;
  }
  static std::vector<Case> cases() {
    std::vector<Case> all;
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
      for (const bool residual : {false, true}) {
        all.push_back({type, 8, 64, 28, residual});
        all.push_back({type, 3, 2048, 7, residual});
        all.push_back({type, 256, 24, 1, residual});
      }
    }
    return all;
  }
};

TEST_P(NormsOnDevices, AreOneOperatorOnCuda) {
  for (const Case& of : cases()) {
    if (!is_cuda() && of.type != at::kFloat) {
      continue;  // the CPU's kernels, which the second device has, know no such norm
    }
    const double tolerance = of.type == at::kFloat ? 1e-4 : of.type == at::kHalf ? 4e-3 : 3e-2;
    // In 16 bits libtorch rounds between its operators, and then lets other numbers through.
    const Results wanted = step(of, at::kDouble, &one_by_one);
    const Results got = step(of, of.type, &fused);
    EXPECT_EQ(got.y.scalar_type(), of.type);
    expect_near(got.y, wanted.y, tolerance, "y");
    ASSERT_EQ(got.others.size(), wanted.others.size());
    for (size_t i = 0; i < got.others.size(); ++i) {
      expect_near(got.others[i], wanted.others[i], tolerance, "gradient or statistic");
    }
    EXPECT_EQ(got.batches, 1);  // in f32, as `to` has made the counter
    const Results again = step(of, of.type, &fused);
    EXPECT_TRUE(again.y.equal(got.y));
    for (size_t i = 0; i < got.others.size(); ++i) {
      EXPECT_TRUE(again.others[i].equal(got.others[i])) << "other bits the second time: " << i;
    }
  }
}

TEST_P(NormsOnDevices, HaveKernelsForWhatModelsHave) {
  const auto fuses = [&](const torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
    return ops::device::can_fuse(ops::Norm(norm).state(), images);
  };
  torch::nn::BatchNorm2d norm(64);
  norm->to(device());
  const at::Tensor images = at::ones({2, 64, 4, 4}).to(device()).contiguous(kLast);
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    EXPECT_EQ(fuses(norm, images.to(type)), is_cuda()) << type;
  }
  EXPECT_FALSE(fuses(norm, images.contiguous()));
  EXPECT_FALSE(fuses(norm, images.to(at::kDouble)));
  norm->eval();
  EXPECT_FALSE(fuses(norm, images));
}

TEST_P(NormsOnDevices, TrainAResNet) {
  ResNet net({.depth = 18, .num_classes = 10});
  net->to(device());
  for (const bool tf32 : {true, false}) {
    at::globalContext().setAllowTF32CuDNN(tf32);
    EXPECT_EQ(engine::advise_channels_last(*net).worth_trying, is_cuda() && tf32);
  }
  engine::lay_out(*net, engine::MemoryFormat::kChannelsLast);
  const std::vector<double> losses = losses_of(net, kLast, 8);
  EXPECT_LT(losses.back(), losses.front() / 2);
}

/// Row-major images have no kernels: there the operators run one by one. A step is worth about 1.
/// Rounding alone makes 0.01 of it after two steps, for relu then lets other numbers through.
TEST_P(NormsOnDevices, TrainAResNetAsTheOperatorsDo) {
  torch::manual_seed(1);
  ResNet one({.depth = 18, .num_classes = 10});
  ResNet other = std::dynamic_pointer_cast<ResNetImpl>(one->clone());
  one->to(device());
  other->to(device());
  engine::lay_out(*one, engine::MemoryFormat::kChannelsLast);
  const std::vector<double> got = losses_of(one, kLast, 3);
  const std::vector<double> wanted = losses_of(other, at::MemoryFormat::Contiguous, 3);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], i == 0 ? 1e-4 : 0.05) << "step " << i;
  }
}

ARGOSY_ON_DEVICES(NormsOnDevices);

}  // namespace
}  // namespace argosy::vision
