#pragma once

#include <cstdint>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/vision/ops/batch_norm.h"

// Shared by the tests of operators.
namespace argosy::vision::ops {

namespace nn = torch::nn;

/// Returns a norm whose weights have both signs and a zero, so that the largest x does not give the
/// largest output.
inline nn::BatchNorm2d norm_of(int64_t channels, nn::BatchNorm2dOptions options) {
  nn::BatchNorm2d norm(options);
  const torch::NoGradGuard no_grad;
  norm->weight.copy_(at::linspace(-1, 1, channels));
  norm->bias.copy_(at::linspace(-0.3, 0.4, channels));
  return norm;
}

inline nn::BatchNorm2d norm_of(int64_t channels) {
  return norm_of(channels, nn::BatchNorm2dOptions(channels));
}

inline at::Tensor images_of(at::IntArrayRef sizes, double mean = 0) {
  torch::manual_seed(3);
  return (torch::randn(sizes) * 2 + mean).contiguous(kLast).requires_grad_();
}

inline at::Tensor leaf(const at::Tensor& x) {
  return x.detach().clone().requires_grad_();
}

inline void expect_close(const at::Tensor& a,
                         const at::Tensor& b,
                         double tolerance,
                         const char* what) {
  const double scale = b.abs().max().item<double>();
  EXPECT_LE((a - b).abs().max().item<double>(), tolerance * (scale + 1e-3)) << what;
}

}  // namespace argosy::vision::ops
