#include "argosy/vision/ops/norm_relu.h"

#include <ATen/Functions.h>
#include <torch/autograd.h>

#include "argosy/vision/ops/batch_norm.h"
#include "argosy/vision/ops/norm_kernels.h"
#include "argosy/vision/ops/norm_relu_device.h"

namespace argosy::vision::ops {
namespace {

using torch::autograd::variable_list;

/// A batch's statistics and what they make of it.
struct Normalization {
  BatchStatistics batch;
  Channels channels;

  static Normalization of(const engine::NormState& norm, const at::Tensor& images) {
    const at::NoGradGuard no_grad;
    if (images.is_cuda()) {
      const Channels channels = device::take_statistics(norm, images);
      return {{.mean = channels.mean,
               .inverse_std = channels.inverse_std,
               .count = values_per_channel(images)},
              channels};
    }
    const BatchStatistics batch = ops::take_statistics(norm, images);
    const at::Tensor scale = norm.weight * batch.inverse_std;
    return {batch,
            {.mean = batch.mean,
             .inverse_std = batch.inverse_std,
             .scale = scale,
             .offset = norm.bias - batch.mean * scale}};
  }
};

struct NormRelu : torch::autograd::Function<NormRelu> {
  /// `residual`: of the images' shape and strides.
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const c10::optional<at::Tensor>& residual,
                            const Normalization& norm) {
    const at::Tensor y =
        images.is_cuda() ? device::norm_relu(images, norm.channels, residual.value_or(at::Tensor()))
                         : on_cpu(images, norm.channels, residual);
    // Without a residual x tells where relu let something through.
    context->save_for_backward({images,
                                weight,
                                bias,
                                norm.channels.mean,
                                norm.channels.inverse_std,
                                norm.channels.scale,
                                norm.channels.offset,
                                residual ? y : at::Tensor()});
    keep(*context, norm.batch);
    return y;
  }

  static at::Tensor on_cpu(const at::Tensor& images,
                           const Channels& channels,
                           const c10::optional<at::Tensor>& residual) {
    at::Tensor y = at::empty_like(images);
    for_parts(row_of(images), [&](int64_t at, const kernels::ImageShape& part) {
      kernels::norm_relu(images.data_ptr<float>() + at,
                         residual ? residual->data_ptr<float>() + at : nullptr,
                         part,
                         channels.scale.data_ptr<float>(),
                         channels.offset.data_ptr<float>(),
                         y.data_ptr<float>() + at);
    });
    return y;
  }

  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    variable_list out = at::GradMode::is_enabled()  // backward(create_graph)
                            ? through_operators(*context, saved, grads[0])
                            : saved[0].is_cuda()
                                  ? on_device(saved, grads[0])
                                  : gradients(*context, saved, grads[0].contiguous(kLast));
    out.emplace_back();
    return out;
  }

  /// Recorded, so that it can be derived again.
  static variable_list through_operators(torch::autograd::AutogradContext& context,
                                         const variable_list& saved,
                                         const at::Tensor& dy) {
    const at::Tensor normed = recorded_norm(saved[0], saved[1], saved[2], saved[4], context);
    const at::Tensor& y = saved[7];
    const at::Tensor passed = dy.masked_fill((y.defined() ? y : normed) <= 0, 0);  // NaN passes
    variable_list out = recorded_gradients(normed, passed, {saved[0], saved[1], saved[2]});
    out.push_back(y.defined() ? passed : at::Tensor());
    return out;
  }

  static variable_list on_device(const variable_list& saved, const at::Tensor& dy) {
    const device::Gradients out = device::gradients(
        dy,
        saved[0],
        saved[7],
        {.mean = saved[3], .inverse_std = saved[4], .scale = saved[5], .offset = saved[6]});
    return {out.images, out.weight, out.bias, out.residual};
  }

  static variable_list gradients(torch::autograd::AutogradContext& context,
                                 const variable_list& saved,
                                 const at::Tensor& dy) {
    const at::Tensor& images = saved[0];
    const at::Tensor& y = saved[7];
    const kernels::ImageShape row = row_of(images);
    const float* const x = images.data_ptr<float>();
    const float* const mean = saved[3].data_ptr<float>();
    const float* const offset = saved[6].data_ptr<float>();
    const at::Tensor passed = y.defined() ? at::empty_like(images) : at::Tensor();
    const auto add =
        [&](int64_t at, const kernels::ImageShape& part, double* first, double* second) {
          kernels::add_relu_gradient_sums(dy.data_ptr<float>() + at,
                                          x + at,
                                          y.defined() ? y.data_ptr<float>() + at : nullptr,
                                          part,
                                          mean,
                                          saved[4].data_ptr<float>(),
                                          saved[5].data_ptr<float>(),
                                          offset,
                                          y.defined() ? passed.data_ptr<float>() + at : nullptr,
                                          first,
                                          second);
        };
    const NormGradient gradient =
        norm_gradient(sums_over_parts(row, add), saved[1], saved[4], context);
    const at::Tensor dx = at::empty_like(images);
    const at::Tensor& left = y.defined() ? passed : dy;  // passed: what relu stops is gone
    for_parts(row, [&](int64_t at, const kernels::ImageShape& part) {
      kernels::norm_relu_gradient(left.data_ptr<float>() + at,
                                  x + at,
                                  part,
                                  mean,
                                  saved[5].data_ptr<float>(),
                                  y.defined() ? nullptr : offset,
                                  gradient.slope.data(),
                                  gradient.level.data(),
                                  dx.data_ptr<float>() + at);
    });
    return {dx, gradient.weight, gradient.bias, passed};
  }
};

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

/// `residual`: may be undefined. Only the device's kernels ask where memory begins; if the CPU's
/// did, bits would depend on it.
bool has_kernels(const engine::NormState& norm,
                 const at::Tensor& images,
                 const at::Tensor& residual) {
  if (images.is_cuda()) {
    return device::can_fuse(norm, images) && (!residual.defined() || device::is_readable(residual));
  }
  return can_fuse(norm, images) && (!residual.defined() || residual.is_contiguous(kLast));
}

at::Tensor apply(const engine::NormState& norm,
                 const at::Tensor& images,
                 const c10::optional<at::Tensor>& residual) {
  return NormRelu::apply(images, norm.weight, norm.bias, residual, Normalization::of(norm, images));
}

}  // namespace

at::Tensor norm_relu(const Norm& norm, const at::Tensor& images) {
  if (!has_kernels(norm.state(), images, at::Tensor())) {
    return norm(images).relu_();
  }
  return apply(norm.state(), images, c10::nullopt);
}

at::Tensor norm_add_relu(const Norm& norm, const at::Tensor& images, const at::Tensor& residual) {
  if (!same_kind(images, residual)) {
    return (norm(images) + residual).relu_();
  }
  if (!has_kernels(norm.state(), images, residual)) {
    return norm(images).add_(residual).relu_();
  }
  return apply(norm.state(), images, residual);
}

}  // namespace argosy::vision::ops
