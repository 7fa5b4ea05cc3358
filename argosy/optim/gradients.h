#pragma once

#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include "argosy/engine/layout.h"
#include "argosy/engine/named.h"
#include "argosy/optim/flat_view.h"
#include "argosy/optim/sharded_step.h"

// Internal to the room.
namespace argosy::optim {

/// Each gradient once, though tied weights list it twice; parameters without one are passed by.
/// `sharded`: this process's parts of them.
/// Errors: UsageError: a gradient that the kernels cannot work on.
[[nodiscard]] std::vector<at::Tensor> unique_gradients(const std::string& where,
                                                       const engine::NamedTensors& parameters,
                                                       const ShardedStep* sharded = nullptr);

/// Calls `body(float* or double*, count)` for pieces that cover all elements of those on the CPU,
/// which it changes in place, in several threads at once, and `on_device` with each of the others.
/// `body` must not throw.
template <typename Body, typename OnDevice>
void over_elements(const std::vector<at::Tensor>& grads,
                   const Body& body,
                   const OnDevice& on_device) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  flat.reserve(grads.size());
  for (const at::Tensor& grad : grads) {
    if (!grad.is_cpu()) {
      on_device(grad);
      flat.push_back(grad);  // which cut() passes by
      continue;
    }
    flat.push_back(engine::is_dense(grad) && !grad.is_neg() ? grad : grad.contiguous().clone());
  }
  const std::vector<kernels::Piece> pieces = cut(flat);
  kernels::for_each_piece(pieces, at::get_num_threads(), [&](std::size_t i) {
    const auto [array, begin, count] = pieces[i];
    if (flat[array].scalar_type() == at::kFloat) {
      body(static_cast<float*>(flat[array].data_ptr()) + begin, count);
    } else {
      body(static_cast<double*>(flat[array].data_ptr()) + begin, count);
    }
  });
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!flat[i].is_same(grads[i])) {
      at::Tensor grad = grads[i];
      grad.copy_(flat[i]);
    } else if (grads[i].is_cpu()) {
      grads[i].unsafeGetTensorImpl()->bump_version();
    }
  }
}

}  // namespace argosy::optim
