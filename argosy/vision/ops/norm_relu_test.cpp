#include "argosy/vision/ops/norm_relu.h"

#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "argosy/vision/ops/norm_test_support.h"

namespace argosy::vision::ops {
namespace {

enum class Residual { kNone, kOther, kItself };

at::Tensor plain(nn::BatchNorm2d& norm, const at::Tensor& x, const at::Tensor& residual) {
  const at::Tensor y = norm(x);
  return (residual.defined() ? y + residual : y).relu();
}

at::Tensor fused(nn::BatchNorm2d& norm, const at::Tensor& x, const at::Tensor& residual) {
  return residual.defined() ? norm_add_relu(norm, x, residual) : norm_relu(norm, x);
}

at::Tensor residual_for(const at::Tensor& x, Residual kind) {
  if (kind == Residual::kNone) {
    return {};
  }
  return kind == Residual::kItself ? x : at::sin(x.detach() * 3).requires_grad_();
}

void expect_same(const at::Tensor& x, Residual kind, double tolerance) {
  nn::BatchNorm2d one = norm_of(x.size(1));
  nn::BatchNorm2d several = norm_of(x.size(1));
  const at::Tensor same = leaf(x);
  const at::Tensor residual = residual_for(x, kind);
  const at::Tensor other = kind == Residual::kOther ? leaf(residual) : residual_for(same, kind);
  for (int step = 0; step < 2; ++step) {
    const at::Tensor y = fused(one, x, residual);
    const at::Tensor expected = plain(several, same, other);
    EXPECT_NE(y.grad_fn()->name(), expected.grad_fn()->name());
    expect_close(y, expected, tolerance, "values");
    EXPECT_TRUE(y.is_contiguous(kLast));
    const at::Tensor weights = at::linspace(-1, 2, y.numel()).view(y.sizes());
    (y * weights).sum().backward();
    (expected * weights).sum().backward();
    expect_close(x.grad(), same.grad(), 10 * tolerance, "gradient of the images");
    if (kind == Residual::kOther) {
      expect_close(residual.grad(), other.grad(), 10 * tolerance, "of the residual");
    }
    expect_close(one->weight.grad(), several->weight.grad(), 10 * tolerance, "of the weight");
    expect_close(one->bias.grad(), several->bias.grad(), 10 * tolerance, "of the bias");
    expect_close(one->running_mean, several->running_mean, 1e-5, "running mean");
    expect_close(one->running_var, several->running_var, 1e-4, "running variance");
    EXPECT_EQ(one->num_batches_tracked.item<int64_t>(), step + 1);
  }
}

TEST(NormRelu, IsTheOperatorsAfterEachOther) {
  for (const Residual kind : {Residual::kNone, Residual::kOther, Residual::kItself}) {
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{4, 16, 12, 12},
                                                                               {3, 5, 7, 9},
                                                                               {2, 33, 4, 3},
                                                                               {7, 3, 1, 1},
                                                                               {1, 64, 9, 9},
                                                                               {2, 8, 70, 71}}) {
      SCOPED_TRACE(testing::Message() << at::IntArrayRef(sizes));
      expect_same(images_of(sizes), kind, 1e-5);
    }
    expect_same(images_of({6, 8, 10, 10}, 300), kind, 1e-3);  // far from zero
  }
}

TEST(NormRelu, ElsewhereItIsThemselves) {
  nn::BatchNorm2d norm = norm_of(4);
  const at::Tensor x = images_of({2, 4, 6, 6});
  const at::Tensor rows = x.detach().contiguous();
  EXPECT_TRUE(norm_relu(norm, rows).is_contiguous());
  const at::Tensor each = at::linspace(-1, 1, 4).view({1, 4, 1, 1});
  nn::BatchNorm2d same = norm_of(4);
  EXPECT_TRUE(torch::equal(norm_add_relu(norm, x, each), plain(same, x, each)));  // broadcast
  EXPECT_TRUE(torch::equal(norm_add_relu(norm, x, rows), plain(same, x, rows)));  // other strides
  norm->eval();
  const at::Tensor before = norm->running_mean.clone();
  EXPECT_TRUE(torch::equal(norm_relu(norm, x), plain(norm, x, {})));
  EXPECT_TRUE(torch::equal(norm_add_relu(norm, x, x), plain(norm, x, x)));
  EXPECT_TRUE(torch::equal(norm->running_mean, before));
  nn::BatchNorm2d wide = norm_of(4);
  wide->to(at::kDouble);
  EXPECT_EQ(norm_relu(wide, x.to(at::kDouble)).scalar_type(), at::kDouble);
}

TEST(NormRelu, AResidualOfAnotherKindMakesTheResultOne) {
  nn::BatchNorm2d norm = norm_of(4);
  nn::BatchNorm2d same = norm_of(4);
  const at::Tensor x = images_of({2, 4, 1, 1});
  for (const at::Tensor& residual :
       {images_of({2, 4, 3, 3}), images_of({2, 4, 1, 1}).to(at::kDouble)}) {
    const at::Tensor y = norm_add_relu(norm, x, residual);
    EXPECT_TRUE(torch::equal(y, plain(same, x, residual)));
    EXPECT_EQ(y.scalar_type(), residual.scalar_type());
  }
}

/// Where memory begins differs from run to run; on the CPU no bit may depend on it.
TEST(NormRelu, AResidualMayBeginAnywhere) {
  nn::BatchNorm2d norm = norm_of(4);
  nn::BatchNorm2d same = norm_of(4);
  const at::Tensor x = images_of({2, 4, 6, 6});
  const at::Tensor residual = (x.detach() * 0.5).contiguous(kLast);
  const at::Tensor moved =
      at::empty({x.numel() + 1}).slice(0, 1).as_strided(x.sizes(), residual.strides(), 1);
  moved.copy_(residual);
  const at::Tensor y = norm_add_relu(norm, x, residual);
  const at::Tensor of_moved = norm_add_relu(same, x, moved);
  EXPECT_EQ(y.grad_fn()->name(), of_moved.grad_fn()->name());
  EXPECT_TRUE(torch::equal(y, of_moved));
}

TEST(NormRelu, NothingIsOverwritten) {
  nn::BatchNorm2d norm = norm_of(3);
  const at::Tensor x = images_of({2, 3, 4, 4}).detach();
  const at::Tensor residual = x * 2;
  const at::Tensor x_before = x.clone();
  const at::Tensor residual_before = residual.clone();
  const at::Tensor y = norm_add_relu(norm, x, residual);
  EXPECT_TRUE(torch::equal(x, x_before) && torch::equal(residual, residual_before));
  EXPECT_TRUE((y >= 0).all().item<bool>() && (y > 0).any().item<bool>());
}

TEST(NormRelu, ASecondDerivativeNeedsNoGradientOfWhatIsFrozen) {
  for (const bool images : {false, true}) {
    nn::BatchNorm2d one = norm_of(4);
    nn::BatchNorm2d several = norm_of(4);
    for (nn::BatchNorm2d* norm : {&one, &several}) {
      (*norm)->weight.requires_grad_(!images);
      (*norm)->bias.requires_grad_(false);
    }
    const at::Tensor x = images_of({3, 4, 6, 6}).detach().requires_grad_(images);
    const at::Tensor of = images ? x : one->weight;
    const at::Tensor same = images ? x : several->weight;
    const auto first = torch::autograd::grad(
        {norm_relu(one, x).pow(3).sum()}, {of}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    const auto expected = torch::autograd::grad(
        {plain(several, x, {}).pow(3).sum()}, {same}, {}, true, /*create_graph=*/true);
    expect_close(first[0].detach(), expected[0].detach(), 1e-4, "first");
    expect_close(torch::autograd::grad({first[0].square().sum()}, {of})[0],
                 torch::autograd::grad({expected[0].square().sum()}, {same})[0],
                 1e-3,
                 "second");
  }
}

TEST(NormRelu, OneNormMayBeUsedInBothWaysBeforeBackward) {
  nn::BatchNorm2d norm = norm_of(4);
  const at::Tensor x = images_of({2, 4, 6, 6});
  const at::Tensor rows = x.detach().contiguous();
  (norm_relu(norm, rows).sum() + norm_relu(norm, x).sum()).backward();
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 2);
}

TEST(NormRelu, TheFirstPixelMayBeFarFromAllOthers) {
  at::Tensor x = images_of({4, 3, 16, 16}).detach() * 0.1;
  x.select(0, 0).select(1, 0).select(1, 0).fill_(1000);
  x = x.contiguous(kLast).requires_grad_();
  expect_same(x, Residual::kNone, 1e-4);
}

TEST(NormRelu, ManyImagesAreSummedAll) {
  expect_same(images_of({131, 5, 2, 2}), Residual::kOther, 1e-5);
}

TEST(NormRelu, NanStaysNan) {
  nn::BatchNorm2d norm = norm_of(3);
  const at::Tensor x = images_of({2, 3, 4, 4}).detach();
  x[1][2][3][3] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = norm_relu(norm, x);
  EXPECT_TRUE(y.select(1, 2).isnan().all().item<bool>());
  EXPECT_FALSE(y.select(1, 1).isnan().any().item<bool>());
}

/// Where relu stops it no gradient passes, not even an infinite one; a NaN stops none.
TEST(NormRelu, NanAndInfinityInBackward) {
  for (const bool create_graph : {false, true}) {
    nn::BatchNorm2d norm = norm_of(3);
    const at::Tensor x = images_of({2, 3, 4, 4}).detach();
    x[1][2][3][3] = std::numeric_limits<float>::quiet_NaN();
    const at::Tensor images = x.requires_grad_();
    const at::Tensor residual = at::zeros_like(x).requires_grad_();
    const at::Tensor y = norm_add_relu(norm, images, residual);
    const at::Tensor dy = at::where(
        y == 0, at::full_like(y, std::numeric_limits<float>::infinity()), at::ones_like(y));
    y.backward(dy, /*retain_graph=*/true, create_graph);
    EXPECT_TRUE(torch::equal(residual.grad().detach(), (y != 0).to(at::kFloat)));
    EXPECT_EQ(norm->bias.grad()[2].item<float>(), 32) << "a NaN is let through";
    EXPECT_TRUE(norm->weight.grad().slice(0, 0, 2).isfinite().all().item<bool>());
  }
}

TEST(NormRelu, GivesTheSameBitsWithAnyNumberOfThreads) {
  const auto run = [](const std::vector<int64_t>& sizes, int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    nn::BatchNorm2d norm = norm_of(16);
    const at::Tensor x = images_of(sizes);
    const at::Tensor y = norm_add_relu(norm, x, x);
    y.square().sum().backward();
    at::set_num_threads(before);
    return std::tuple(y, x.grad(), norm->weight.grad(), norm->running_var);
  };
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{7, 16, 12, 12}, {1, 16, 63, 65}}) {  // images, and parts of one
    const auto [y, dx, dw, variance] = run(sizes, 1);
    const auto [y2, dx2, dw2, variance2] = run(sizes, 3);
    EXPECT_TRUE(torch::equal(y, y2) && torch::equal(dx, dx2));
    EXPECT_TRUE(torch::equal(dw, dw2) && torch::equal(variance, variance2));
  }
}

TEST(NormRelu, ASecondDerivativeIsThatOfTheOperators) {
  const auto penalty = [](bool as_one, bool with_residual) {
    nn::BatchNorm2d norm = norm_of(4);
    const at::Tensor x = images_of({3, 4, 6, 6});
    const at::Tensor residual = with_residual ? x * 0.5 : at::Tensor();
    const at::Tensor y = as_one ? fused(norm, x, residual) : plain(norm, x, residual);
    const at::Tensor weights = at::linspace(-1, 2, y.numel()).view(y.sizes());
    const auto first = torch::autograd::grad(
        {(y.square() * weights).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    return std::pair(first[0].detach(),
                     torch::autograd::grad({first[0].square().sum()}, {x, norm->weight}));
  };
  for (const bool with_residual : {false, true}) {
    const auto [first, second] = penalty(true, with_residual);
    const auto [expected_first, expected_second] = penalty(false, with_residual);
    expect_close(first, expected_first, 1e-4, "first derivative");
    expect_close(second[0], expected_second[0], 1e-3, "second, of the images");
    expect_close(second[1], expected_second[1], 1e-3, "second, of the weight");
  }
}

/// As f32 of the same numbers, with one rounding of what comes out.
TEST(NormRelu, ImagesOfBF16AreComputedInF32) {
  constexpr double kRounding = 1.0 / 256;
  for (const Residual kind : {Residual::kNone, Residual::kOther}) {
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
             {4, 16, 12, 12}, {3, 5, 7, 9}, {2, 33, 4, 3}, {1, 64, 9, 9}, {2, 70, 5, 5}}) {
      SCOPED_TRACE(testing::Message() << at::IntArrayRef(sizes));
      nn::BatchNorm2d one = norm_of(sizes[1]), several = norm_of(sizes[1]);
      const at::Tensor x = leaf(images_of(sizes, 3).to(at::kBFloat16).contiguous(kLast));
      const at::Tensor wide = leaf(x.to(at::kFloat));
      const at::Tensor residual = kind == Residual::kNone
                                      ? at::Tensor()
                                      : leaf(at::sin(wide.detach() * 3).to(at::kBFloat16));
      const at::Tensor other = residual.defined() ? leaf(residual.to(at::kFloat)) : residual;
      const at::Tensor y = fused(one, x, residual);
      const at::Tensor expected = plain(several, wide, other);
      EXPECT_EQ(y.scalar_type(), at::kBFloat16);
      EXPECT_NE(y.grad_fn()->name().find("NormRelu"), std::string::npos);
      expect_close(y.to(at::kFloat), expected, kRounding, "values");
      const at::Tensor dy = at::linspace(-1, 2, y.numel()).view(y.sizes()).to(at::kBFloat16);
      y.backward(dy);
      expected.backward(dy.to(at::kFloat));
      expect_close(x.grad().to(at::kFloat), wide.grad(), kRounding, "gradient of the images");
      if (residual.defined()) {
        EXPECT_TRUE(torch::equal(residual.grad().to(at::kFloat), other.grad()));
      }
      expect_close(one->weight.grad(), several->weight.grad(), 1e-4, "of the weight");
      expect_close(one->bias.grad(), several->bias.grad(), 1e-4, "of the bias");
      expect_close(one->running_mean, several->running_mean, 1e-5, "running mean");
      expect_close(one->running_var, several->running_var, 1e-4, "running variance");
    }
  }
}

/// To the nearest, in the middle to the even one; what is no number stays it.
TEST(NormRelu, RoundsToBF16AsLibtorchDoes) {
  nn::BatchNorm2d norm = norm_of(16);
  const torch::NoGradGuard no_grad;
  norm->weight.fill_(0);  // the bias comes out, rounded
  norm->bias.copy_(at::tensor({1.0F,
                               1.00390625F,  // in the middle: down to even
                               1.01171875F,  // in the middle: up to even
                               1.00390637F,  // a little above the middle
                               3.3895e38F,   // the largest of bf16
                               3.4e38F,      // beyond it
                               1e-40F,       // denormal
                               9.2e-41F,     // the smallest bf16
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN(),
                               -1.0F,
                               0.0F,
                               0.1F,
                               0.2F,
                               0.3F,
                               0.7F}));
  const at::Tensor x = images_of({2, 16, 3, 3}).detach().to(at::kBFloat16).contiguous(kLast);
  const at::Tensor y = norm_relu(norm, x).select(0, 0).select(1, 0).select(1, 0);
  const at::Tensor expected = norm->bias.relu().to(at::kBFloat16);
  EXPECT_TRUE(at::allclose(y.to(at::kFloat), expected.to(at::kFloat), 0, 0, /*equal_nan=*/true))
      << y << expected;
}

/// What a second derivative of 16-bit images goes through.
TEST(NormRelu, ImagesOf16BitsAreRecordedInF32) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = (images_of({3, 4, 6, 6}, 10).detach() * 300).to(type).contiguous(kLast);
    const at::Tensor images = x.clone().requires_grad_();
    const at::Tensor wide = x.to(at::kDouble).requires_grad_();
    const nn::BatchNorm2d norm = norm_of(4);
    const at::Tensor expected = at::batch_norm(wide,
                                               norm->weight.detach().to(at::kDouble),
                                               norm->bias.detach().to(at::kDouble),
                                               {},
                                               {},
                                               true,
                                               0.1,
                                               1e-5,
                                               false);
    const at::Tensor inverse_std =
        (wide.detach().var({0, 2, 3}, /*unbiased=*/false) + 1e-5).rsqrt().to(at::kFloat);
    torch::autograd::AutogradContext context;
    const at::Tensor normed = recorded_norm(images, norm->weight, norm->bias, inverse_std, context);
    expect_close(normed.detach().to(at::kDouble), expected.detach(), 1e-5, "values");
    const at::Tensor dy = at::linspace(-1, 2, x.numel()).view(x.sizes()).to(type);
    const at::Tensor dx = recorded_gradients(normed, dy, {images})[0];
    expected.backward(dy.to(at::kDouble));
    EXPECT_EQ(dx.scalar_type(), type);
    expect_close(dx.detach().to(at::kDouble), wide.grad(), 1e-2, "gradient");
  }
}

}  // namespace
}  // namespace argosy::vision::ops
