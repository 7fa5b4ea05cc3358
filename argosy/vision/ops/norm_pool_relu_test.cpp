#include "argosy/vision/ops/norm_pool_relu.h"

#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "argosy/vision/ops/norm_test_support.h"

namespace argosy::vision::ops {
namespace {

at::Tensor plain(nn::BatchNorm2d& norm, const at::Tensor& images) {
  return at::max_pool2d(norm(images), 2).relu();
}

struct Shape {
  std::vector<int64_t> sizes;
  double mean = 0;
};

TEST(NormPoolRelu, IsTheThreeOperators) {
  for (const Shape& shape : {Shape{{4, 16, 28, 28}},
                             Shape{{3, 5, 7, 9}},  // odd sides, odd channels
                             Shape{{2, 33, 4, 3}},
                             Shape{{1, 3, 2, 2}},
                             Shape{{6, 8, 10, 10}, 300}}) {  // far from zero
    nn::BatchNorm2d one = norm_of(shape.sizes[1]);
    nn::BatchNorm2d three = norm_of(shape.sizes[1]);
    const at::Tensor x = images_of(shape.sizes, shape.mean);
    const at::Tensor same = x.detach().clone().requires_grad_();
    for (int step = 0; step < 2; ++step) {
      const at::Tensor y = norm_pool_relu(one, x);
      const at::Tensor expected = plain(three, same);
      const double tolerance = shape.mean == 0 ? 1e-5 : 1e-3;
      expect_close(y, expected, tolerance, "values");
      const at::Tensor weights = at::linspace(-1, 2, y.numel()).view(y.sizes());
      (y * weights).sum().backward();
      (expected * weights).sum().backward();
      expect_close(x.grad(), same.grad(), 10 * tolerance, "gradient of the images");
      expect_close(one->weight.grad(), three->weight.grad(), 10 * tolerance, "of the weight");
      expect_close(one->bias.grad(), three->bias.grad(), 10 * tolerance, "of the bias");
      expect_close(one->running_mean, three->running_mean, 1e-5, "running mean");
      expect_close(one->running_var, three->running_var, 1e-4, "running variance");
      EXPECT_EQ(one->num_batches_tracked.item<int64_t>(), step + 1);
    }
  }
}

TEST(NormPoolRelu, HasTheOptionsOfTheNorm) {
  for (const auto& options : {nn::BatchNorm2dOptions(4).momentum(0.3).eps(0.1),
                              nn::BatchNorm2dOptions(4).momentum(c10::optional<double>()),
                              nn::BatchNorm2dOptions(4).track_running_stats(false)}) {
    nn::BatchNorm2d one = norm_of(4, options);
    nn::BatchNorm2d three = norm_of(4, options);
    for (int step = 0; step < 3; ++step) {
      const at::Tensor x = images_of({2, 4, 6, 6}, step);
      expect_close(norm_pool_relu(one, x), plain(three, x), 1e-5, "values");
    }
    if (options.track_running_stats()) {
      expect_close(one->running_mean, three->running_mean, 1e-5, "running mean");
      expect_close(one->running_var, three->running_var, 1e-5, "running variance");
    }
  }
}

TEST(NormPoolRelu, ElsewhereItIsThemselves) {
  nn::BatchNorm2d norm = norm_of(4);
  const at::Tensor rows = images_of({2, 4, 6, 6}).detach().contiguous();
  const at::Tensor doubles = rows.to(at::kDouble);
  EXPECT_TRUE(norm_pool_relu(norm, rows).is_contiguous());
  nn::BatchNorm2d wide = norm_of(4);
  wide->to(at::kDouble);
  EXPECT_EQ(norm_pool_relu(wide, doubles).scalar_type(), at::kDouble);
  norm->eval();
  const at::Tensor x = images_of({2, 4, 6, 6});
  const at::Tensor before = norm->running_mean.clone();
  EXPECT_TRUE(torch::equal(norm_pool_relu(norm, x), plain(norm, x)));
  EXPECT_TRUE(torch::equal(norm->running_mean, before));
  nn::BatchNorm2d bare(nn::BatchNorm2dOptions(4).affine(false));
  nn::BatchNorm2d same(nn::BatchNorm2dOptions(4).affine(false));
  EXPECT_TRUE(torch::equal(norm_pool_relu(bare, x), plain(same, x)));
}

TEST(NormPoolRelu, NanStaysNanAndEqualValuesGoToTheFirst) {
  nn::BatchNorm2d one = norm_of(3);
  nn::BatchNorm2d three = norm_of(3);
  at::Tensor x = at::ones({2, 3, 4, 4}).contiguous(kLast);  // all equal
  x[0][1][0][0] = 5;
  x.requires_grad_();
  const at::Tensor same = x.detach().clone().requires_grad_();
  const at::Tensor weights = at::linspace(1, 2, 24).view({2, 3, 2, 2});
  (norm_pool_relu(one, x) * weights).sum().backward();
  (plain(three, same) * weights).sum().backward();
  expect_close(x.grad(), same.grad(), 1e-4, "gradient of equal values");
  const at::Tensor bad = x.detach().clone();
  bad[1][2][3][3] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = norm_pool_relu(one, bad);
  EXPECT_TRUE(y.select(1, 2).isnan().all().item<bool>());
  EXPECT_FALSE(y.select(1, 1).isnan().any().item<bool>());
}

TEST(NormPoolRelu, GivesTheSameBitsWithAnyNumberOfThreads) {
  const auto run = [](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    nn::BatchNorm2d norm = norm_of(16);
    const at::Tensor x = images_of({7, 16, 12, 12});
    const at::Tensor y = norm_pool_relu(norm, x);
    y.square().sum().backward();
    at::set_num_threads(before);
    return std::tuple(y, x.grad(), norm->weight.grad(), norm->running_var);
  };
  const auto [y, dx, dw, variance] = run(1);
  const auto [y2, dx2, dw2, variance2] = run(3);
  EXPECT_TRUE(torch::equal(y, y2) && torch::equal(dx, dx2));
  EXPECT_TRUE(torch::equal(dw, dw2) && torch::equal(variance, variance2));
}

/// As f32 of the same numbers, with one rounding of what comes out.
TEST(NormPoolRelu, ImagesOfBF16AreComputedInF32) {
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{4, 16, 12, 12}, {3, 5, 7, 9}, {2, 33, 4, 3}}) {
    SCOPED_TRACE(testing::Message() << at::IntArrayRef(sizes));
    nn::BatchNorm2d one = norm_of(sizes[1]);
    nn::BatchNorm2d three = norm_of(sizes[1]);
    const at::Tensor x =
        images_of(sizes).detach().to(at::kBFloat16).contiguous(kLast).requires_grad_();
    const at::Tensor wide = x.detach().to(at::kFloat).requires_grad_();
    const at::Tensor y = norm_pool_relu(one, x);
    const at::Tensor expected = plain(three, wide);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    EXPECT_NE(y.grad_fn()->name().find("NormPoolRelu"), std::string::npos);
    expect_close(y.to(at::kFloat), expected, 1.0 / 256, "values");
    const at::Tensor dy = at::linspace(-1, 2, y.numel()).view(y.sizes()).to(at::kBFloat16);
    y.backward(dy);
    expected.backward(dy.to(at::kFloat));
    expect_close(x.grad().to(at::kFloat), wide.grad(), 1.0 / 256, "gradient of the images");
    expect_close(one->weight.grad(), three->weight.grad(), 1e-4, "of the weight");
    expect_close(one->bias.grad(), three->bias.grad(), 1e-4, "of the bias");
  }
}

TEST(NormPoolRelu, ASecondDerivativeIsTheOneOfTheThree) {
  const auto penalty = [](bool fused) {
    nn::BatchNorm2d norm = norm_of(4);
    const at::Tensor x = images_of({3, 4, 6, 6});
    const at::Tensor y = fused ? norm_pool_relu(norm, x) : plain(norm, x);
    const at::Tensor weights = at::linspace(-1, 2, y.numel()).view(y.sizes());
    const auto first = torch::autograd::grad(
        {(y.square() * weights).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    return std::pair(first[0].detach(),
                     torch::autograd::grad({first[0].square().sum()}, {x, norm->weight}));
  };
  const auto [first, second] = penalty(true);
  const auto [expected_first, expected_second] = penalty(false);
  expect_close(first, expected_first, 1e-4, "first derivative");
  expect_close(second[0], expected_second[0], 1e-3, "second, of the images");
  expect_close(second[1], expected_second[1], 1e-3, "second, of the weight");
}

}  // namespace
}  // namespace argosy::vision::ops
