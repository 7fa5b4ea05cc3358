#include "argosy/vision/ops/norm_relu_device.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/device_program.h"
#include "argosy/vision/ops/norm_relu_source.h"
#include "argosy/vision/ops/norm_test_support.h"

#include "tests/support/emulated_program.h"

namespace argosy::vision::ops {
namespace {

using Count = long long;  // NOLINT(google-runtime-int): the kernels' type
constexpr int64_t kPixels = 203;
constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

/// The kernels on the CPU, as norm_relu_device.cpp calls them.
class Emulated final {
 public:
  Emulated(at::ScalarType type, int64_t channels)
      : program_(device::norm_relu_source(type),
                 {"moments",
                  "statistics",
                  "norm_relu",
                  "gradient_sums",
                  "gradient_channels",
                  "image_gradient"}),
        channels_(static_cast<int>(channels)),
        columns_(static_cast<unsigned>(channels / (type == at::kFloat ? 4 : 8))) {}

  /// [4, C]: mean, 1 / std, scale, offset. `tracked`: undefined if another counts batches.
  [[nodiscard]] at::Tensor statistics(const at::Tensor& x,
                                      const at::Tensor& weight,
                                      const at::Tensor& bias,
                                      const at::Tensor& running_mean,
                                      const at::Tensor& running_var,
                                      const at::Tensor& tracked) const {
    const at::Tensor partial = at::full({2 * kBlocks, channels_}, NAN);
    launch("moments", x.data_ptr(), pixels(x), channels_, partial.data_ptr());
    at::Tensor out = at::full({4, channels_}, NAN);
    program_.launch("statistics",
                    by_channels(),
                    partial.data_ptr(),
                    int{kBlocks},
                    x.data_ptr(),
                    pixels(x),
                    channels_,
                    weight.data_ptr(),
                    bias.data_ptr(),
                    running_mean.data_ptr(),
                    running_var.data_ptr(),
                    data(tracked),
                    kMomentum,
                    kEpsilon,
                    out.data_ptr());
    return out;
  }
  [[nodiscard]] at::Tensor forward(const at::Tensor& x,
                                   const at::Tensor& residual,
                                   const at::Tensor& of_channels) const {
    at::Tensor y = at::full_like(x, NAN);
    launch("norm_relu",
           x.data_ptr(),
           data(residual),
           pixels(x),
           channels_,
           of_channels.data_ptr(),
           y.data_ptr());
    return y;
  }
  struct Gradients {
    at::Tensor images{}, channels{}, residual{};
  };
  /// `y`: undefined without a residual.
  [[nodiscard]] Gradients backward(const at::Tensor& dy,
                                   const at::Tensor& x,
                                   const at::Tensor& y,
                                   const at::Tensor& of_channels) const {
    Gradients out{.images = at::full_like(x, NAN), .channels = at::full({4, channels_}, NAN)};
    if (y.defined()) {
      out.residual = at::full_like(x, NAN);
    }
    const at::Tensor partial = at::full({2 * kBlocks, channels_}, NAN);
    launch("gradient_sums",
           dy.data_ptr(),
           x.data_ptr(),
           data(y),
           pixels(x),
           channels_,
           of_channels.data_ptr(),
           data(out.residual),
           partial.data_ptr());
    program_.launch("gradient_channels",
                    by_channels(),
                    partial.data_ptr(),
                    int{kBlocks},
                    pixels(x),
                    channels_,
                    of_channels.data_ptr(),
                    out.channels.data_ptr());
    launch("image_gradient",
           y.defined() ? out.residual.data_ptr() : dy.data_ptr(),
           x.data_ptr(),
           pixels(x),
           channels_,
           of_channels.data_ptr(),
           out.channels.data_ptr(),
           static_cast<int>(y.defined()),
           out.images.data_ptr());
    return out;
  }

 private:
  static constexpr int kBlocks = 3;
  static constexpr unsigned kColumns = 5;  // a last block of channels that is not full

  static void* data(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.data_ptr() : nullptr;
  }
  static Count pixels(const at::Tensor& x) { return x.size(0); }
  [[nodiscard]] test::EmulatedProgram::Grid by_channels() const {
    return {.blocks = static_cast<unsigned>((channels_ + 31) / 32), .threads = 32, .threads_y = 32};
  }
  template <typename... Args>
  void launch(const std::string& kernel, Args... args) const {
    const test::EmulatedProgram::Grid grid{.blocks = kBlocks,
                                           .threads = kColumns,
                                           .blocks_y = (columns_ + kColumns - 1) / kColumns,
                                           .threads_y = 7};
    program_.launch(kernel, grid, args...);
  }

  const test::EmulatedProgram program_;
  const int channels_;
  const unsigned columns_;
};

class NormReluKernels : public ::testing::TestWithParam<std::pair<at::ScalarType, double>> {
 protected:
  void expect_as_operators(int64_t channels, bool with_residual, double mean);
};

void NormReluKernels::expect_as_operators(int64_t channels, bool with_residual, double mean) {
  const at::ScalarType type = GetParam().first;
  const double tolerance = GetParam().second;
  torch::manual_seed(5);
  const auto some = [&] { return at::randn({kPixels, channels}).to(type); };
  const at::Tensor x = (at::randn({kPixels, channels}) * 2 + mean).to(type);
  const at::Tensor residual = with_residual ? some() : at::Tensor();
  const at::Tensor dy = some();
  const at::Tensor weight = at::linspace(-1, 1, channels), bias = at::linspace(-0.3, 0.4, channels);
  const at::Tensor running_mean = at::zeros({channels}), running_var = at::ones({channels});
  const at::Tensor tracked = at::zeros({1}, at::kLong);

  // Libtorch's operators in f64, of the same rounded numbers.
  const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble).detach().requires_grad_(); };
  const at::Tensor wide_x = wide(x), wide_w = wide(weight), wide_b = wide(bias);
  const at::Tensor wanted_mean = at::zeros({channels}, at::kDouble);
  const at::Tensor wanted_var = at::ones({channels}, at::kDouble);
  const at::Tensor normed = at::batch_norm(
      wide_x, wide_w, wide_b, wanted_mean, wanted_var, true, kMomentum, kEpsilon, false);
  const at::Tensor wide_residual = with_residual ? wide(residual) : at::Tensor();
  const at::Tensor wanted = (with_residual ? normed + wide_residual : normed).relu();
  wanted.backward(dy.to(at::kDouble));

  const Emulated kernels(type, channels);
  const at::Tensor of_channels =
      kernels.statistics(x, weight, bias, running_mean, running_var, tracked);
  const at::Tensor y = kernels.forward(x, residual, of_channels);
  const Emulated::Gradients got =
      kernels.backward(dy, x, with_residual ? y : at::Tensor(), of_channels);
  const auto expect = [&](const at::Tensor& a, const at::Tensor& b, const char* what) {
    expect_close(a.to(at::kDouble), b, tolerance, what);
  };
  expect(running_mean, wanted_mean, "running mean");
  expect(running_var, wanted_var, "running variance");
  EXPECT_EQ(tracked.item<int64_t>(), 1);
  expect(y, wanted.detach(), "y");
  expect(got.images, wide_x.grad(), "dx");
  expect(got.channels[0], wide_w.grad(), "gradient of the weight");
  expect(got.channels[1], wide_b.grad(), "gradient of the bias");
  if (with_residual) {
    expect(got.residual, wide_residual.grad(), "gradient of the residual");
  }
}

TEST_P(NormReluKernels, AreTheOperators) {
  expect_as_operators(64, false, 0);
  expect_as_operators(8, false, 0.5);
}
TEST_P(NormReluKernels, AddAResidual) {
  expect_as_operators(72, true, 0);
}

/// Of f32, whose own rounding is far below: the square of the mean is 10⁶ times the variance.
TEST(NormReluKernelsOfF32, KeepTheVarianceOfLargeNumbers) {
  const at::Tensor x = at::randn({kPixels, 8}) + 1000;
  const at::Tensor ones = at::ones({8}), zeros = at::zeros({8});
  const at::Tensor out =
      Emulated(at::kFloat, 8)
          .statistics(x, ones, zeros, at::zeros({8}), at::ones({8}), at::zeros({1}, at::kLong));
  const at::Tensor wide = x.to(at::kDouble);
  expect_close(out[0].to(at::kDouble), wide.mean(0), 1e-6, "mean");
  expect_close(
      out[1].to(at::kDouble), (wide.var(0, false) + kEpsilon).rsqrt(), 1e-4, "inverse deviation");
  const at::Tensor wanted = at::batch_norm(wide, {}, {}, {}, {}, true, 0, kEpsilon, false).relu();
  const at::Tensor y = Emulated(at::kFloat, 8).forward(x, at::Tensor(), out);
  expect_close(y.to(at::kDouble), wanted, 1e-4, "y");
}

/// Wherever one pixel is that lies far from all others.
TEST(NormReluKernelsOfF32, OnePixelMayBeFarFromAllOthers) {
  const Emulated kernels(at::kFloat, 8);
  for (const int64_t at : {int64_t{0}, kPixels / 4, kPixels / 2, kPixels * 3 / 4, kPixels - 1}) {
    const at::Tensor x = at::randn({kPixels, 8}) * 1e-3 + 1000;
    x[at].fill_(999);
    const at::Tensor out = kernels.statistics(
        x, at::ones({8}), at::zeros({8}), at::zeros({8}), at::ones({8}), at::zeros({1}, at::kLong));
    const at::Tensor wide = x.to(at::kDouble);
    expect_close(
        out[1].to(at::kDouble), (wide.var(0, false) + kEpsilon).rsqrt(), 1e-4, "inverse deviation");
  }
}

TEST(NormReluKernelsOfF32, LetNanPass) {
  const at::Tensor x = at::zeros({kPixels, 8});
  x[3][1] = NAN;
  const at::Tensor identity = at::zeros({4, 8});
  identity[1].fill_(1);
  identity[2].fill_(1);
  const at::Tensor y = Emulated(at::kFloat, 8).forward(x, at::Tensor(), identity);
  EXPECT_TRUE(std::isnan(y[3][1].item<float>()));
  EXPECT_EQ(y.isnan().sum().item<int64_t>(), 1);
}

/// Where relu stops it no gradient passes, not even an infinite one; a NaN stops none.
TEST(NormReluKernelsOfF32, LetTheGradientsOfNanPass) {
  const at::Tensor x = at::full({kPixels, 8}, 2.F);
  x[3][1] = NAN;
  x[4][2] = -1;
  const at::Tensor dy = at::ones({kPixels, 8});
  dy[4][2] = INFINITY;
  at::Tensor passed = at::ones({kPixels, 8});
  passed[4][2] = 0;
  const at::Tensor identity = at::zeros({4, 8});
  identity[1].fill_(1);
  identity[2].fill_(1);
  const Emulated kernels(at::kFloat, 8);
  for (const bool with_residual : {false, true}) {
    const at::Tensor y = with_residual ? x.clamp_min(0) : at::Tensor();
    const Emulated::Gradients got = kernels.backward(dy, x, y, identity);
    EXPECT_TRUE(got.channels[1].equal(passed.sum(0))) << "of the bias";
    EXPECT_TRUE(got.images.isfinite().select(1, 2).all().item<bool>());
    EXPECT_TRUE(got.images.select(1, 1).isnan().all().item<bool>());
    EXPECT_TRUE(!with_residual || got.residual.equal(passed));
  }
}

TEST(NormReluKernelsOfF32, MayLeaveTheCounterToOthers) {
  const at::Tensor x = at::randn({kPixels, 8});
  const at::Tensor ones = at::ones({8}), zeros = at::zeros({8});
  const at::Tensor mean = at::zeros({8}), counted_mean = at::zeros({8});
  const at::Tensor tracked = at::zeros({1}, at::kLong);
  const Emulated kernels(at::kFloat, 8);
  (void)kernels.statistics(x, ones, zeros, mean, at::ones({8}), at::Tensor());
  (void)kernels.statistics(x, ones, zeros, counted_mean, at::ones({8}), tracked);
  EXPECT_TRUE(mean.equal(counted_mean));
  EXPECT_EQ(tracked.item<int64_t>(), 1);
}

TEST(NormReluKernelsOfF32, AreCompiledForGpus) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const char* const architecture : {"sm_80", "sm_90"}) {
      const engine::CompiledProgram made =
          engine::compile_program("norm_relu", device::norm_relu_source(type), architecture);
      if (!made.has_compiler) {
        GTEST_SKIP() << made.error;
      }
      EXPECT_FALSE(made.code.empty()) << architecture << ": " << made.error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         NormReluKernels,
                         ::testing::Values(std::pair(at::kFloat, 1e-5),
                                           std::pair(at::kHalf, 2e-3),
                                           std::pair(at::kBFloat16, 1e-2)));

}  // namespace
}  // namespace argosy::vision::ops
