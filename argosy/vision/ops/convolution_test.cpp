#include "argosy/vision/ops/convolution.h"

#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/cpu.h"
#include "argosy/os/cpu.h"

namespace argosy::vision::ops {
namespace {

namespace nn = torch::nn;
constexpr auto kImagesLast = at::MemoryFormat::ChannelsLast;

struct Case {
  std::vector<int64_t> images;  // N, C, H, W
  int64_t out;
  std::vector<int64_t> kernel, stride, padding;
  bool bias = false;
};

nn::Conv2d conv_of(const Case& each) {
  torch::manual_seed(5);
  nn::Conv2d conv(nn::Conv2dOptions(each.images[1], each.out, {each.kernel[0], each.kernel[1]})
                      .stride({each.stride[0], each.stride[1]})
                      .padding(torch::ExpandingArray<2>({each.padding[0], each.padding[1]}))
                      .bias(each.bias));
  conv->to(at::kFloat);
  return conv;
}

at::Tensor images_for(const Case& each) {
  torch::manual_seed(6);
  return torch::randn(each.images).contiguous(kImagesLast).requires_grad_();
}

struct Results {
  at::Tensor y, dx, dweight, dbias;
};

/// In f64, of the numbers that `type` leaves of everything.
Results exact(const Case& each, at::ScalarType type) {
  nn::Conv2d conv = conv_of(each);
  conv->to(type);
  conv->to(at::kDouble);
  const at::Tensor x = images_for(each).detach().to(type).to(at::kDouble).requires_grad_();
  const at::Tensor y = conv(x);
  const at::Tensor dy = at::linspace(-1, 2, y.numel()).view(y.sizes());
  y.backward(dy.to(type).to(at::kDouble));
  return {y, x.grad(), conv->weight.grad(), each.bias ? conv->bias.grad() : at::Tensor()};
}

Results computed(const Case& each, at::ScalarType type) {
  nn::Conv2d conv = conv_of(each);
  const at::Tensor x = images_for(each);
  at::Tensor y;
  {
    const engine::Autocast autocast({.enabled = type == at::kBFloat16});
    y = convolution(conv, x);
  }
  y.backward(at::linspace(-1, 2, y.numel()).view(y.sizes()).to(type));
  return {y, x.grad(), conv->weight.grad(), each.bias ? conv->bias.grad() : at::Tensor()};
}

/// Of the largest: one rounding to bf16 is 2⁻⁹.
double error(const at::Tensor& a, const at::Tensor& exact) {
  return ((a.to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{4, 32, 3, 3}, 48, {3, 3}, {1, 1}, {1, 1}},
      {{4, 32, 6, 6}, 48, {3, 3}, {2, 2}, {1, 1}},
      {{4, 32, 6, 6}, 48, {3, 3}, {1, 1}, {1, 1}},
      {{4, 32, 6, 6}, 40, {1, 1}, {2, 2}, {0, 0}},
      {{4, 32, 5, 7}, 40, {1, 1}, {2, 2}, {0, 0}, true},
      {{9, 35, 7, 5}, 33, {3, 3}, {2, 2}, {1, 1}, true},
      {{4, 32, 9, 8}, 48, {5, 3}, {2, 3}, {2, 0}},
      {{4, 32, 8, 9}, 48, {2, 5}, {3, 1}, {1, 4}, true},  // more padding than half of the kernel
      {{33, 32, 5, 5}, 48, {5, 5}, {1, 1}, {0, 0}},       // one pixel comes out
      {{16, 32, 11, 3}, 48, {3, 3}, {4, 2}, {0, 0}},      // rows that no window meets
      {{64, 1, 4, 4}, 48, {3, 3}, {1, 1}, {2, 2}, true},  // one channel
  };
  return all;
}

bool is_product(const at::Tensor& y) {
  return y.grad_fn() != nullptr && y.grad_fn()->name().find("SmallConv") != std::string::npos;
}

/// Elsewhere convolution() is libtorch's, and these tests compare it with itself.
bool computes_products(at::ScalarType type) {
  const os::Cpu cpu = os::usable_cpu();
  return type == at::kBFloat16 ? cpu.amx_bf16
                               : cpu.avx512 && engine::setup_cpu().blas != engine::Blas::kReference;
}

TEST(Convolution, IsTheOneOfLibtorchUpToARounding) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double rounding = type == at::kFloat ? 1e-5 : 1.0 / 256;
    int products = 0;
    for (const Case& each : cases()) {
      SCOPED_TRACE(testing::Message()
                   << type << " " << at::IntArrayRef(each.images) << " by "
                   << at::IntArrayRef(each.kernel) << " every " << at::IntArrayRef(each.stride));
      const Results wanted = exact(each, type);
      const Results got = computed(each, type);
      EXPECT_EQ(got.y.scalar_type(), type);
      EXPECT_TRUE(each.images[1] == 1 || got.y.is_contiguous(kImagesLast));
      products += is_product(got.y) ? 1 : 0;
      EXPECT_LE(error(got.y, wanted.y), rounding);
      EXPECT_LE(error(got.dx, wanted.dx), rounding);
      EXPECT_LE(error(got.dweight, wanted.dweight), rounding);
      if (each.bias) {
        EXPECT_LE(error(got.dbias, wanted.dbias), rounding);
      }
    }
    if (computes_products(type)) {
      EXPECT_EQ(products, type == at::kFloat ? 8 : 11);
    }
  }
}

TEST(Convolution, OnlyWhatNeedsAGradientGetsOne) {
  const Case& each = cases()[1];
  for (const bool of_images : {false, true}) {
    nn::Conv2d conv = conv_of(each);
    conv->weight.requires_grad_(!of_images);
    const at::Tensor x = images_for(each).detach().requires_grad_(of_images);
    at::Tensor y;
    {
      const engine::Autocast autocast;
      y = convolution(conv, x);
    }
    y.sum().backward();
    EXPECT_EQ(x.grad().defined(), of_images);
    EXPECT_EQ(conv->weight.grad().defined(), !of_images);
  }
}

TEST(Convolution, HasASecondDerivative) {
  const Case each{{16, 24, 4, 4}, 32, {3, 3}, {2, 2}, {1, 1}, true};
  std::vector<at::Tensor> seconds;
  for (const bool own : {true, false}) {
    nn::Conv2d conv = conv_of(each);
    const at::Tensor x = images_for(each);
    at::Tensor y;
    {
      const engine::Autocast autocast;
      y = own ? convolution(conv, x) : conv(x);
    }
    const at::Tensor dx =
        torch::autograd::grad({y.square().sum()}, {x}, {}, true, /*create_graph=*/true)[0];
    dx.square().sum().backward();
    seconds.push_back(conv->weight.grad());
  }
  EXPECT_LE(error(seconds[0], seconds[1].to(at::kDouble)), 0.02);
}

TEST(Convolution, ElsewhereItIsLibtorchs) {
  Case each = cases()[0];
  const auto same = [](nn::Conv2d conv, const at::Tensor& x) {
    const at::Tensor y = convolution(conv, x);
    EXPECT_FALSE(is_product(y));
    EXPECT_TRUE(torch::equal(y, conv(x)));
  };
  const at::Tensor x = images_for(each);
  nn::Conv2d wide = conv_of(each);
  wide->to(at::kDouble);
  same(wide, x.to(at::kDouble));
  const engine::Autocast autocast;
  same(conv_of(each), x.detach().contiguous());  // channels first
  const nn::Conv2dOptions of_kernel(32, 32, 3);
  same(nn::Conv2d(nn::Conv2dOptions(of_kernel).groups(2)), x);
  same(nn::Conv2d(nn::Conv2dOptions(of_kernel).dilation(2).padding(2)), x);
  same(nn::Conv2d(nn::Conv2dOptions(of_kernel).padding(torch::kSame)), x);
  same(nn::Conv2d(nn::Conv2dOptions(of_kernel).padding(1).padding_mode(torch::kCircular)), x);
  each.images = {1, 32, 9, 9};  // more pixels than pay
  same(conv_of(each), images_for(each));
  each.images = {1, 3, 3, 3};  // too little for a product
  same(conv_of(each), images_for(each));
  EXPECT_THROW((void)convolution(*std::make_unique<nn::Conv2d>(nn::Conv2dOptions(3, 4, 3)), x),
               c10::Error);
}

}  // namespace
}  // namespace argosy::vision::ops
