#include "argosy/vision/ops/norm_pool_relu.h"

#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <torch/autograd.h>

#include "argosy/vision/ops/batch_norm.h"
#include "argosy/vision/ops/norm_pool_kernels.h"

namespace argosy::vision::ops {
namespace {

at::Tensor three_operators(const Norm& norm, const at::Tensor& images) {
  return at::max_pool2d(norm(images), 2).relu_();
}

at::Tensor pooled_like(const at::Tensor& images, at::ScalarType type) {
  return at::empty({images.size(0), images.size(1), images.size(2) / 2, images.size(3) / 2},
                   images.options().dtype(type).memory_format(kLast));
}

struct NormPoolRelu : torch::autograd::Function<NormPoolRelu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const BatchStatistics& batch) {
    const at::Tensor& mean = batch.mean;
    const at::Tensor& inverse_std = batch.inverse_std;
    const kernels::ImageShape shape = shape_of(images);
    const at::Tensor scale = weight * inverse_std;
    const at::Tensor offset = bias - mean * scale;
    at::Tensor y = pooled_like(images, images.scalar_type());
    const at::Tensor chosen = at::empty_like(y);
    const at::Tensor where = pooled_like(images, at::kInt);
    const kernels::Pixels x = pixels_of(images);
    const kernels::PixelsToWrite out = pixels_to_write(y), of_chosen = pixels_to_write(chosen);
    for_images(images.size(0), [&](int64_t n) {
      kernels::norm_pool_relu(x.from(n * shape.elements()),
                              shape,
                              scale.data_ptr<float>(),
                              offset.data_ptr<float>(),
                              out.from(n * shape.pooled()),
                              of_chosen.from(n * shape.pooled()),
                              where.data_ptr<int32_t>() + n * shape.pooled());
    });
    context->save_for_backward({images, weight, bias, mean, inverse_std, chosen, where});
    keep(*context, batch);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor nothing;
    if (at::GradMode::is_enabled()) {  // backward(create_graph)
      torch::autograd::variable_list out = through_three_operators(*context, saved, grads[0]);
      out.push_back(nothing);
      return out;
    }
    const auto [dx, dweight, dbias] = gradients(*context, saved, grads[0].contiguous(kLast));
    return {dx, dweight, dbias, nothing};
  }

  /// Recorded, so that it can be derived again.
  static torch::autograd::variable_list through_three_operators(
      torch::autograd::AutogradContext& context,
      const torch::autograd::variable_list& saved,
      const at::Tensor& grad) {
    const at::Tensor normed = recorded_norm(saved[0], saved[1], saved[2], saved[4], context);
    const at::Tensor y = at::max_pool2d(normed, 2).relu();
    return recorded_gradients(y, grad, {saved[0], saved[1], saved[2]});
  }

  static std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients(
      torch::autograd::AutogradContext& context,
      const torch::autograd::variable_list& saved,
      const at::Tensor& dy) {
    const at::Tensor& images = saved[0];
    const kernels::ImageShape shape = shape_of(images);
    const auto* const mean = saved[3].data_ptr<float>();
    const auto* const inverse_std = saved[4].data_ptr<float>();
    const auto* const where = saved[6].data_ptr<int32_t>();
    const kernels::Pixels x = pixels_of(images), coming = pixels_of(dy);
    const kernels::Pixels chosen = pixels_of(saved[5]);
    const std::vector<double> sums = sums_over_images(
        images.size(0), shape.channels, [&](int64_t n, double* first, double* second) {
          const int64_t at = n * shape.pooled();
          kernels::add_gradient_sums(coming.from(at),
                                     chosen.from(at),
                                     where + at,
                                     shape,
                                     mean,
                                     inverse_std,
                                     first,
                                     second);
        });
    const NormGradient gradient = norm_gradient(sums, saved[1], saved[4], context);
    const at::Tensor dx = at::empty_like(images);
    const kernels::PixelsToWrite into = pixels_to_write(dx);
    for_images(images.size(0), [&](int64_t n) {
      kernels::spread_gradient(x.from(n * shape.elements()),
                               coming.from(n * shape.pooled()),
                               where + n * shape.pooled(),
                               shape,
                               mean,
                               gradient.scale.data(),
                               gradient.slope.data(),
                               gradient.level.data(),
                               into.from(n * shape.elements()));
    });
    return {dx, gradient.weight, gradient.bias};
  }
};

}  // namespace

at::Tensor norm_pool_relu(const Norm& norm, const at::Tensor& images) {
  if (!can_fuse(norm.state(), images) || images.size(2) < 2 || images.size(3) < 2) {
    return three_operators(norm, images);
  }
  const BatchStatistics batch = take_statistics(norm.state(), images);
  return NormPoolRelu::apply(images, norm.state().weight, norm.state().bias, batch);
}

}  // namespace argosy::vision::ops
