#include "argosy/vision/ops/convolution.h"

#include <array>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/cpu.h"
#include "argosy/vision/ops/norm_test_support.h"
#include "argosy/vision/ops/product_convolution.h"

namespace argosy::vision::ops {
namespace {

constexpr ProductWays kAll{.result = true, .of_weight = true, .of_images = true};

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
  return torch::randn(each.images).contiguous(kLast).requires_grad_();
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

Results computed(const Case& each, at::ScalarType type, bool products, bool weight_last) {
  nn::Conv2d conv = conv_of(each);
  conv->to(type);
  const at::Tensor x = leaf(images_for(each).to(type));
  const at::Tensor weight =
      leaf(weight_last ? conv->weight.contiguous(kLast) : conv->weight.detach());
  const at::Tensor bias = each.bias ? leaf(conv->bias) : at::Tensor();
  const at::Tensor y = product_convolution(
      x, weight, bias, {each.stride, each.padding}, {products, products, products});
  y.backward(at::linspace(-1, 2, y.numel()).view(y.sizes()).to(type));
  return {y, x.grad(), weight.grad(), each.bias ? bias.grad() : at::Tensor()};
}

/// Of the largest. One rounding to bf16 is 2⁻⁹ of a number, and a sum is rounded after the bias
/// too.
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

at::Tensor all_products(nn::Conv2d& conv, const Case& each) {
  return product_convolution(
      images_for(each), conv->weight, conv->bias, {each.stride, each.padding}, kAll);
}

bool is_product(const at::Tensor& y) {
  return y.grad_fn() != nullptr && y.grad_fn()->name().find("ProductConv") != std::string::npos;
}

at::Tensor under_autocast(nn::Conv2d& conv, const at::Tensor& x, bool bf16 = true) {
  const engine::Autocast autocast({.enabled = bf16});
  return convolution(conv, x);
}

/// All of it as products, on any machine, and none of it.
TEST(ProductConvolution, IsTheConvolutionUpToARounding) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    if (type == at::kBFloat16 && !engine::fast_products().bf16) {
      continue;  // its products may be added up in bf16
    }
    const double rounding = type == at::kFloat ? 1e-5 : 1.0 / 256;
    for (const Case& each : cases()) {
      const Results wanted = exact(each, type);
      for (const auto& [products, weight_last] :
           {std::pair(true, false), {true, true}, {false, true}}) {
        SCOPED_TRACE(testing::Message() << type << " " << at::IntArrayRef(each.images) << " by "
                                        << at::IntArrayRef(each.kernel) << " every "
                                        << at::IntArrayRef(each.stride) << products);
        const Results got = computed(each, type, products, weight_last);
        EXPECT_EQ(got.y.scalar_type(), type);
        EXPECT_TRUE(each.images[1] == 1 || got.y.is_contiguous(kLast));
        EXPECT_LE(error(got.y, wanted.y), rounding);
        EXPECT_LE(error(got.dx, wanted.dx), rounding);
        EXPECT_LE(error(got.dweight, wanted.dweight), rounding);
        if (each.bias) {
          EXPECT_LE(error(got.dbias, wanted.dbias), rounding);
        }
      }
    }
  }
}

/// Strides of dimensions of one may be any number, and memory may begin anywhere.
TEST(ProductConvolution, ImagesMayBePartOfOthers) {
  torch::manual_seed(7);
  const at::Tensor many = torch::randn({3, 24, 5, 4}).contiguous(kLast);
  const at::Tensor weight = torch::randn({16, 24, 3, 3});
  for (const at::Tensor& x : {many.narrow(0, 1, 1), many.narrow(0, 1, 1).narrow(2, 2, 1)}) {
    ASSERT_TRUE(x.is_contiguous(kLast));
    const at::Tensor y = product_convolution(x, weight, {}, {{1, 1}, {1, 1}}, kAll);
    EXPECT_LE(error(y, at::conv2d(x, weight, {}, 1, 1).to(at::kDouble)), 1e-5);
  }
}

/// Each input by itself, and all that some need together.
TEST(ProductConvolution, GivesGradientsToWhatNeedsThem) {
  const Case each{{4, 32, 6, 6}, 48, {3, 3}, {2, 2}, {1, 1}, true};
  const Results wanted = exact(each, at::kFloat);
  for (int needed = 1; needed < 8; ++needed) {
    nn::Conv2d conv = conv_of(each);
    const at::Tensor x = images_for(each).detach().requires_grad_((needed & 1) != 0);
    conv->weight.requires_grad_((needed & 2) != 0);
    conv->bias.requires_grad_((needed & 4) != 0);
    const at::Tensor y =
        product_convolution(x, conv->weight, conv->bias, {each.stride, each.padding}, kAll);
    y.backward(at::linspace(-1, 2, y.numel()).view(y.sizes()));
    const std::array<at::Tensor, 3> got{x.grad(), conv->weight.grad(), conv->bias.grad()};
    const std::array<at::Tensor, 3> expected{wanted.dx, wanted.dweight, wanted.dbias};
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].defined(), (needed >> i & 1) != 0) << needed;
      if (got[i].defined()) {
        EXPECT_LE(error(got[i], expected[i]), 1e-5) << needed;
      }
    }
  }
}

/// The path of each is chosen by the numbers of its header.
TEST(Convolution, ComputesProductsOfFewPixels) {
  const auto chosen = [](std::vector<int64_t> images, int64_t kernel, int64_t stride, bool bf16) {
    const Case each{
        std::move(images), 64, {kernel, kernel}, {stride, stride}, {kernel / 2, kernel / 2}};
    nn::Conv2d conv = conv_of(each);
    return is_product(under_autocast(conv, images_for(each), bf16));
  };
  for (const bool bf16 : {false, true}) {
    const bool fast = bf16 ? engine::fast_products().bf16 : engine::fast_products().f32;
    EXPECT_EQ(chosen({4, 64, 4, 4}, 3, 1, bf16), fast);
    EXPECT_EQ(chosen({4, 64, 8, 8}, 3, 2, bf16), fast);
    EXPECT_EQ(chosen({4, 64, 7, 7}, 1, 1, bf16), fast);
    EXPECT_EQ(chosen({4, 64, 7, 7}, 3, 1, bf16), fast && bf16);
    EXPECT_FALSE(chosen({4, 64, 8, 8}, 3, 1, bf16));
    EXPECT_FALSE(chosen({4, 64, 8, 8}, 1, 1, bf16));
    EXPECT_FALSE(chosen({4, 64, 4, 4}, 5, 1, bf16)) << "windows of 25 images";
    EXPECT_FALSE(chosen({1, 24, 4, 4}, 3, 1, bf16)) << "too little";
  }
}

/// As after any operator.
TEST(ProductConvolution, WhatComesOutMayBeChangedInPlace) {
  std::vector<at::Tensor> gradients;
  for (const bool in_place : {false, true}) {
    nn::Conv2d conv = conv_of(cases()[0]);
    at::Tensor y = all_products(conv, cases()[0]);
    EXPECT_FALSE(y.is_view());
    (in_place ? y.relu_() : y.relu()).sum().backward();
    gradients.push_back(conv->weight.grad());
  }
  EXPECT_TRUE(torch::equal(gradients[0], gradients[1]));
}

/// Whatever region of mixed precision they are computed in.
TEST(ProductConvolution, OfF32IsF32InsideOfARegionToo) {
  std::vector<at::Tensor> results, gradients;
  for (const auto& [forward, backward] : {std::pair(false, false), {false, true}, {true, false}}) {
    nn::Conv2d conv = conv_of(cases()[0]);
    at::Tensor y;
    {
      const engine::Autocast autocast({.enabled = forward});
      y = all_products(conv, cases()[0]);
    }
    const engine::Autocast autocast({.enabled = backward});
    y.sum().backward();
    results.push_back(y);
    gradients.push_back(conv->weight.grad());
  }
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_TRUE(torch::equal(results[0], results[i])) << i;
    EXPECT_TRUE(torch::equal(gradients[0], gradients[i])) << i;
  }
}

TEST(ProductConvolution, HasASecondDerivative) {
  const Case each{{16, 24, 4, 4}, 32, {3, 3}, {2, 2}, {1, 1}, true};
  std::vector<std::vector<at::Tensor>> seconds;
  for (const bool own : {true, false}) {
    nn::Conv2d conv = conv_of(each);
    const at::Tensor x = images_for(each);
    const at::Tensor y =
        own ? product_convolution(x, conv->weight, conv->bias, {each.stride, each.padding}, kAll)
            : conv(x);
    const at::Tensor dx =
        torch::autograd::grad({y.pow(3).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
    dx.square().sum().backward();
    seconds.push_back({conv->weight.grad(), conv->bias.grad(), x.grad()});
  }
  for (size_t i = 0; i < seconds[0].size(); ++i) {
    EXPECT_LE(error(seconds[0][i], seconds[1][i].to(at::kDouble)), 1e-5) << i;
  }
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
  nn::Conv2d judged = conv_of(each);
  judged->eval();
  same(judged, x);
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
  nn::Conv2d of_three(nn::Conv2dOptions(3, 4, 3));
  EXPECT_THROW((void)convolution(of_three, x), c10::Error);
}

}  // namespace
}  // namespace argosy::vision::ops
