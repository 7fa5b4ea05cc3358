#include "argosy/optim/clip.h"

#include <cmath>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/optim/gradients.h"
#include "argosy/optim/kernels/norm.h"

namespace argosy::optim {
namespace {

double max_abs(const at::Tensor& grad) {
  const auto count = static_cast<std::size_t>(grad.numel());
  return grad.scalar_type() == at::kFloat
             ? kernels::max_abs(static_cast<const float*>(grad.data_ptr()), count)
             : kernels::max_abs(static_cast<const double*>(grad.data_ptr()), count);
}

double norm_of(const std::vector<at::Tensor>& grads, bool largest) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& grad : grads) {
    flat.push_back(engine::is_dense(grad) ? grad : grad.detach().contiguous());
  }
  if (!largest) {
    ExactSum total;
    for (const ExactSum& sum : sums_of_squares(flat)) {
      total.add(sum);
    }
    return std::sqrt(total.value());
  }
  std::vector<double> values;
  std::vector<at::Tensor> on_device;
  for (const at::Tensor& grad : flat) {
    if (grad.is_cpu()) {
      values.push_back(max_abs(grad));
    } else if (grad.numel() > 0) {
      on_device.push_back(grad.abs().max());
    }
  }
  const std::vector<double> theirs = fetch(on_device);
  values.insert(values.end(), theirs.begin(), theirs.end());
  double top = 0;
  for (const double value : values) {
    top = value > top || std::isnan(value) ? value : top;
    if (std::isnan(top)) {
      break;
    }
  }
  return top;
}

}  // namespace

double clip_grad_norm_(const engine::NamedTensors& parameters,
                       double max_norm,
                       const ClipNormOptions& options) {
  constexpr const char* kWhere = "optim.clip_grad_norm_";
  ARGOSY_CHECK(max_norm >= 0, kWhere, "max_norm must be >= 0, got {}", max_norm);
  ARGOSY_CHECK(options.norm_type == 2.0 || std::isinf(options.norm_type),
               kWhere,
               "norm_type must be 2 or infinity, got {}",
               options.norm_type);
  const std::vector<at::Tensor> grads = unique_gradients(kWhere, parameters);
  const engine::DirectUse use(grads, /*writes=*/true);
  const double norm = norm_of(grads, std::isinf(options.norm_type));
  ARGOSY_CHECK(
      !options.error_if_nonfinite || std::isfinite(norm),
      kWhere,
      "the norm of the gradients is {}. Look for the layer whose gradient is not finite, or "
      "lower the learning rate.",
      norm);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1)) {  // NaN goes on into the gradients, as in PyTorch
    over_elements(
        grads,
        [factor](auto* data, std::size_t count) { kernels::scale(data, count, factor); },
        [factor](const at::Tensor& grad) { grad.mul_(factor); });
  }
  return norm;
}

void clip_grad_value_(const engine::NamedTensors& parameters, double max) {
  ARGOSY_CHECK(max >= 0, "optim.clip_grad_value_", "max must be >= 0, got {}", max);
  const std::vector<at::Tensor> grads = unique_gradients("optim.clip_grad_value_", parameters);
  const engine::DirectUse use(grads, /*writes=*/true);
  over_elements(
      grads,
      [max](auto* data, std::size_t count) { kernels::clamp(data, count, -max, max); },
      [max](const at::Tensor& grad) { grad.clamp_(-max, max); });
}

}  // namespace argosy::optim
