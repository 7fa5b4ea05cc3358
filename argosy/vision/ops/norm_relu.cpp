#include "argosy/vision/ops/norm_relu.h"

#include <ATen/Functions.h>
#include <torch/autograd.h>

#include "argosy/vision/ops/batch_norm.h"
#include "argosy/vision/ops/norm_kernels.h"
#include "argosy/vision/ops/norm_relu_device.h"

namespace argosy::vision::ops {
namespace {

using torch::autograd::variable_list;

struct NormRelu : torch::autograd::Function<NormRelu> {
  /// `residual`: of the images' shape and strides.
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const c10::optional<at::Tensor>& residual,
                            const BatchStatistics& batch) {
    const at::Tensor scale = weight * batch.inverse_std;
    const at::Tensor offset = bias - batch.mean * scale;
    at::Tensor y = at::empty_like(images);
    const kernels::Pixels x = pixels_of(images);
    const kernels::Pixels added = pixels_of(residual.value_or(at::Tensor()));
    const kernels::PixelsToWrite out = pixels_to_write(y);
    for_parts(row_of(images), [&](int64_t at, const kernels::ImageShape& part) {
      kernels::norm_relu(x.from(at),
                         added.from(at),
                         part,
                         scale.data_ptr<float>(),
                         offset.data_ptr<float>(),
                         out.from(at));
    });
    // Without a residual x tells where relu let something through.
    context->save_for_backward({images,
                                weight,
                                bias,
                                batch.mean,
                                batch.inverse_std,
                                scale,
                                offset,
                                residual ? y : at::Tensor()});
    keep(*context, batch);
    return y;
  }

  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    variable_list out =
        at::GradMode::is_enabled()  // backward(create_graph)
            ? recorded_relu_gradients(
                  {saved[0], saved[1], saved[2]}, saved[4], saved[7], grads[0], *context)
            : gradients(*context, saved, grads[0].contiguous(kLast));
    out.emplace_back();
    return out;
  }

  static variable_list gradients(torch::autograd::AutogradContext& context,
                                 const variable_list& saved,
                                 const at::Tensor& dy) {
    const at::Tensor& images = saved[0];
    const at::Tensor& y = saved[7];
    const kernels::ImageShape row = row_of(images);
    const float* const mean = saved[3].data_ptr<float>();
    const float* const offset = saved[6].data_ptr<float>();
    const at::Tensor passed = y.defined() ? at::empty_like(images) : at::Tensor();
    const kernels::Pixels x = pixels_of(images), out = pixels_of(y), coming = pixels_of(dy);
    const kernels::PixelsToWrite through = pixels_to_write(passed);
    const auto add =
        [&](int64_t at, const kernels::ImageShape& part, double* first, double* second) {
          kernels::add_relu_gradient_sums(coming.from(at),
                                          x.from(at),
                                          out.from(at),
                                          part,
                                          mean,
                                          saved[4].data_ptr<float>(),
                                          saved[5].data_ptr<float>(),
                                          offset,
                                          through.from(at),
                                          first,
                                          second);
        };
    const NormGradient gradient =
        norm_gradient(sums_over_parts(row, add), saved[1], saved[4], context);
    const at::Tensor dx = at::empty_like(images);
    // passed: what relu stops is gone
    const kernels::Pixels left = y.defined() ? pixels_of(passed) : coming;
    const kernels::PixelsToWrite into = pixels_to_write(dx);
    for_parts(row, [&](int64_t at, const kernels::ImageShape& part) {
      kernels::norm_relu_gradient(left.from(at),
                                  x.from(at),
                                  part,
                                  mean,
                                  saved[5].data_ptr<float>(),
                                  y.defined() ? nullptr : offset,
                                  gradient.slope.data(),
                                  gradient.level.data(),
                                  into.from(at));
    });
    return {dx, gradient.weight, gradient.bias, passed};
  }
};

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

}  // namespace

at::Tensor norm_relu(const Norm& norm, const at::Tensor& images) {
  if (device::can_fuse(norm.state(), images)) {
    return device::norm_relu(norm.state(), images, at::Tensor());
  }
  if (!can_fuse(norm.state(), images)) {
    return norm(images).relu_();
  }
  const BatchStatistics batch = take_statistics(norm.state(), images);
  return NormRelu::apply(
      images, norm.state().weight, norm.state().bias, c10::optional<at::Tensor>(), batch);
}

at::Tensor norm_add_relu(const Norm& norm, const at::Tensor& images, const at::Tensor& residual) {
  if (!same_kind(images, residual)) {
    return (norm(images) + residual).relu_();
  }
  const bool in_order = residual.is_contiguous(kLast);
  if (in_order && device::can_fuse(norm.state(), images)) {
    return device::norm_relu(norm.state(), images, residual);
  }
  if (!in_order || !can_fuse(norm.state(), images)) {
    return norm(images).add_(residual).relu_();
  }
  const BatchStatistics batch = take_statistics(norm.state(), images);
  return NormRelu::apply(
      images, norm.state().weight, norm.state().bias, c10::optional<at::Tensor>(residual), batch);
}

}  // namespace argosy::vision::ops
