#include "argosy/vision/ops/batch_norm.h"

#include <cmath>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

namespace argosy::vision::ops {
namespace {

struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;  // biased
};

Moments moments_of(const at::Tensor& images) {
  const kernels::Image shape = shape_of(images);
  const auto* const x = images.data_ptr<float>();
  // Taken from the first pixel: differences of large numbers would lose the variance.
  const std::vector<double> sums = sums_over_images(
      images.size(0), shape.channels, [&](int64_t n, double* first, double* second) {
        kernels::add_moments(x + n * shape.elements(), shape, x, first, second);
      });
  const auto count = values_per_channel(images);
  Moments out;
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double shifted = sums[static_cast<std::size_t>(c)] / count;
    const double square = sums[static_cast<std::size_t>(shape.channels + c)] / count;
    out.mean.push_back(shifted + x[c]);
    const double variance = square - shifted * shifted;
    out.variance.push_back(variance < 0 ? 0 : variance);  // NaN stays
  }
  return out;
}

at::Tensor of(const std::vector<float>& values) {
  return at::tensor(values, at::kFloat);
}

void move_statistics(torch::nn::BatchNorm2d& norm,
                     const Moments& moments,
                     const at::Tensor& mean,
                     double count) {
  if (!norm->options.track_running_stats()) {
    return;
  }
  const at::NoGradGuard no_grad;
  norm->num_batches_tracked += 1;
  const double factor = norm->options.momentum().has_value()
                            ? *norm->options.momentum()
                            : 1.0 / norm->num_batches_tracked.item<double>();
  std::vector<float> variance;
  for (const double each : moments.variance) {
    variance.push_back(static_cast<float>(each * count / (count - 1)));
  }
  norm->running_mean.mul_(1 - factor).add_(mean, factor);
  norm->running_var.mul_(1 - factor).add_(of(variance), factor);
}

}  // namespace

bool can_fuse(const torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  return norm->is_training() && norm->options.affine() && images.dim() == 4 &&
         images.scalar_type() == at::kFloat && images.device().is_cpu() &&
         norm->weight.scalar_type() == at::kFloat && images.size(1) == norm->weight.numel() &&
         images.numel() > images.size(1) && images.is_contiguous(kLast);
}

kernels::Image shape_of(const at::Tensor& images) {
  return {.height = images.size(2), .width = images.size(3), .channels = images.size(1)};
}

double values_per_channel(const at::Tensor& images) {
  return static_cast<double>(images.numel()) / static_cast<double>(images.size(1));
}

void for_images(int64_t images, const std::function<void(int64_t)>& body) {
  at::parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      body(n);
    }
  });
}

std::vector<double> sums_over_images(int64_t images,
                                     int64_t channels,
                                     const std::function<void(int64_t, double*, double*)>& add) {
  std::vector<double> each(static_cast<std::size_t>(2 * images * channels));
  for_images(images, [&](int64_t n) {
    double* const first = each.data() + 2 * n * channels;
    add(n, first, first + channels);
  });
  std::vector<double> total(static_cast<std::size_t>(2 * channels));
  for (std::size_t n = 0; n < static_cast<std::size_t>(images); ++n) {
    for (std::size_t i = 0; i < total.size(); ++i) {
      total[i] += each[n * total.size() + i];
    }
  }
  return total;
}

BatchStatistics take_statistics(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  const Moments moments = moments_of(images);
  std::vector<float> inverse_std;
  for (const double each : moments.variance) {
    inverse_std.push_back(static_cast<float>(1 / std::sqrt(each + norm->options.eps())));
  }
  const at::Tensor mean = of({moments.mean.begin(), moments.mean.end()});
  move_statistics(norm, moments, mean, values_per_channel(images));
  return {.mean = mean, .inverse_std = of(inverse_std)};
}

NormGradient norm_gradient(const std::vector<double>& sums,
                           const at::Tensor& weight,
                           const at::Tensor& inverse_std,
                           double count) {
  const auto channels = static_cast<std::size_t>(weight.numel());
  NormGradient out;
  std::vector<float> of_weight, of_bias;
  for (std::size_t c = 0; c < channels; ++c) {
    const double sum = sums[c];
    const double product = sums[channels + c];
    const double inverse = inverse_std.data_ptr<float>()[c];
    const double factor = weight.data_ptr<float>()[c] * inverse;
    of_bias.push_back(static_cast<float>(sum));
    of_weight.push_back(static_cast<float>(product));
    out.scale.push_back(static_cast<float>(factor));
    out.slope.push_back(static_cast<float>(-factor * inverse * product / count));
    out.level.push_back(static_cast<float>(-factor * sum / count));
  }
  out.weight = of(of_weight);
  out.bias = of(of_bias);
  return out;
}

at::Tensor recorded_norm(const at::Tensor& images,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         const at::Tensor& inverse_std) {
  const at::Tensor centred = images - images.mean({0, 2, 3}, true);
  const at::Tensor variance = centred.square().mean({0, 2, 3}, true);
  const at::Tensor wanted = inverse_std.view({1, -1, 1, 1});
  const at::Tensor spare = wanted.pow(-2) - variance.detach();  // the norm's epsilon
  return centred * (variance + spare).rsqrt() * weight.view({1, -1, 1, 1}) +
         bias.view({1, -1, 1, 1});
}

}  // namespace argosy::vision::ops
