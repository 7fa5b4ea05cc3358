#include "argosy/vision/ops/norm_pool_relu.h"

#include <cmath>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "argosy/vision/ops/norm_pool_kernels.h"

namespace argosy::vision::ops {
namespace {

constexpr auto kLast = at::MemoryFormat::ChannelsLast;

at::Tensor three_operators(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  return at::max_pool2d(norm(images), 2).relu_();
}

bool suits(const torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  return norm->is_training() && norm->options.affine() && images.dim() == 4 &&
         images.scalar_type() == at::kFloat && images.device().is_cpu() &&
         norm->weight.scalar_type() == at::kFloat && images.size(1) == norm->weight.numel() &&
         images.numel() > images.size(1) && images.size(2) > 1 && images.size(3) > 1 &&
         images.is_contiguous(kLast);
}

kernels::Image shape_of(const at::Tensor& images) {
  return {.height = images.size(2), .width = images.size(3), .channels = images.size(1)};
}

double values_per_channel(const at::Tensor& images) {
  return static_cast<double>(images.numel()) / static_cast<double>(images.size(1));
}

at::Tensor pooled_like(const at::Tensor& images, at::ScalarType type) {
  return at::empty({images.size(0), images.size(1), images.size(2) / 2, images.size(3) / 2},
                   images.options().dtype(type).memory_format(kLast));
}

/// Two numbers for each channel that `add(image, first, second)` sums over an image, over all.
/// Images are summed by themselves and in order, whatever thread had them.
template <typename Add>
std::vector<double> sums_over_images(int64_t images, int64_t channels, const Add& add) {
  std::vector<double> each(static_cast<std::size_t>(2 * images * channels));
  at::parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      double* const first = each.data() + 2 * n * channels;
      add(n, first, first + channels);
    }
  });
  std::vector<double> total(static_cast<std::size_t>(2 * channels));
  for (std::size_t i = 0; i < each.size(); ++i) {
    total[i % total.size()] += each[i];
  }
  return total;
}

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

struct NormPoolRelu : torch::autograd::Function<NormPoolRelu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const at::Tensor& mean,
                            const at::Tensor& inverse_std) {
    const kernels::Image shape = shape_of(images);
    const at::Tensor scale = weight * inverse_std;
    const at::Tensor offset = bias - mean * scale;
    at::Tensor y = pooled_like(images, at::kFloat);
    const at::Tensor chosen = pooled_like(images, at::kFloat);
    const at::Tensor where = pooled_like(images, at::kInt);
    at::parallel_for(0, images.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        kernels::norm_pool_relu(images.data_ptr<float>() + n * shape.elements(),
                                shape,
                                scale.data_ptr<float>(),
                                offset.data_ptr<float>(),
                                y.data_ptr<float>() + n * shape.pooled(),
                                chosen.data_ptr<float>() + n * shape.pooled(),
                                where.data_ptr<int32_t>() + n * shape.pooled());
      }
    });
    context->save_for_backward({images, weight, bias, mean, inverse_std, chosen, where});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor nothing;
    if (at::GradMode::is_enabled()) {  // backward(create_graph)
      torch::autograd::variable_list out = through_three_operators(saved, grads[0]);
      out.insert(out.end(), {nothing, nothing});
      return out;
    }
    const auto [dx, dweight, dbias] = gradients(saved, grads[0].contiguous(kLast));
    return {dx, dweight, dbias, nothing, nothing};
  }

  /// Recorded, so that it can be derived again.
  static torch::autograd::variable_list through_three_operators(
      const torch::autograd::variable_list& saved, const at::Tensor& grad) {
    const at::Tensor& images = saved[0];
    const at::Tensor mean = images.mean({0, 2, 3}, true);
    const at::Tensor centred = images - mean;
    const at::Tensor variance = centred.square().mean({0, 2, 3}, true);
    const at::Tensor wanted = saved[4].view({1, -1, 1, 1});
    const at::Tensor spare = wanted.pow(-2) - variance.detach();  // the norm's epsilon
    const at::Tensor normed = centred * (variance + spare).rsqrt() * saved[1].view({1, -1, 1, 1}) +
                              saved[2].view({1, -1, 1, 1});
    const at::Tensor y = at::max_pool2d(normed, 2).relu();
    return torch::autograd::grad({y},
                                 {saved[0], saved[1], saved[2]},
                                 {grad},
                                 /*retain_graph=*/true,
                                 /*create_graph=*/true,
                                 /*allow_unused=*/true);
  }

  static std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients(
      const torch::autograd::variable_list& saved, const at::Tensor& dy) {
    const at::Tensor& images = saved[0];
    const kernels::Image shape = shape_of(images);
    const int64_t channels = shape.channels;
    const auto* const mean = saved[3].data_ptr<float>();
    const auto* const inverse_std = saved[4].data_ptr<float>();
    const auto* const chosen = saved[5].data_ptr<float>();
    const auto* const where = saved[6].data_ptr<int32_t>();
    const std::vector<double> sums =
        sums_over_images(images.size(0), channels, [&](int64_t n, double* first, double* second) {
          const int64_t at = n * shape.pooled();
          kernels::add_gradient_sums(dy.data_ptr<float>() + at,
                                     chosen + at,
                                     where + at,
                                     shape,
                                     mean,
                                     inverse_std,
                                     first,
                                     second);
        });
    const auto count = values_per_channel(images);
    std::vector<float> dbias, dweight, scale, slope, level;
    for (int64_t c = 0; c < channels; ++c) {
      const double sum = sums[static_cast<std::size_t>(c)];
      const double product = sums[static_cast<std::size_t>(channels + c)];
      const double factor = static_cast<double>(saved[1].data_ptr<float>()[c]) * inverse_std[c];
      dbias.push_back(static_cast<float>(sum));
      dweight.push_back(static_cast<float>(product));
      scale.push_back(static_cast<float>(factor));
      slope.push_back(static_cast<float>(-factor * inverse_std[c] * product / count));
      level.push_back(static_cast<float>(-factor * sum / count));
    }
    const at::Tensor dx = at::empty_like(images);
    at::parallel_for(0, images.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        kernels::spread_gradient(images.data_ptr<float>() + n * shape.elements(),
                                 dy.data_ptr<float>() + n * shape.pooled(),
                                 where + n * shape.pooled(),
                                 shape,
                                 mean,
                                 scale.data(),
                                 slope.data(),
                                 level.data(),
                                 dx.data_ptr<float>() + n * shape.elements());
      }
    });
    return {dx, of(dweight), of(dbias)};
  }
};

/// As torch::nn::BatchNorm2d moves them.
void move_statistics(torch::nn::BatchNorm2d& norm, const Moments& moments, double count) {
  if (!norm->options.track_running_stats()) {
    return;
  }
  const at::NoGradGuard no_grad;
  norm->num_batches_tracked += 1;
  const double factor = norm->options.momentum().has_value()
                            ? *norm->options.momentum()
                            : 1.0 / norm->num_batches_tracked.item<double>();
  std::vector<float> mean(moments.mean.begin(), moments.mean.end());
  std::vector<float> variance;
  for (const double each : moments.variance) {
    variance.push_back(static_cast<float>(each * count / (count - 1)));
  }
  norm->running_mean.mul_(1 - factor).add_(of(mean), factor);
  norm->running_var.mul_(1 - factor).add_(of(variance), factor);
}

}  // namespace

at::Tensor norm_pool_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  if (!suits(norm, images)) {
    return three_operators(norm, images);
  }
  const Moments moments = moments_of(images);
  std::vector<float> mean(moments.mean.begin(), moments.mean.end());
  std::vector<float> inverse_std;
  for (const double each : moments.variance) {
    inverse_std.push_back(static_cast<float>(1 / std::sqrt(each + norm->options.eps())));
  }
  move_statistics(norm, moments, values_per_channel(images));
  return NormPoolRelu::apply(images, norm->weight, norm->bias, of(mean), of(inverse_std));
}

}  // namespace argosy::vision::ops
