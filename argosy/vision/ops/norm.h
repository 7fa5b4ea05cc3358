#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/batchnorm.h>

#include "argosy/engine/synced_norm.h"

namespace argosy::vision::ops {

/// A batch norm as part of an operator: libtorch's, or one that parallel's convert_sync_batchnorm()
/// extends over ranks. Holds references into it.
class Norm final {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Norm(const torch::nn::BatchNorm2d& norm);
  // NOLINTNEXTLINE(google-explicit-constructor)
  Norm(const engine::BatchNorm2d& norm) : state_(norm->state()) {}

  [[nodiscard]] const engine::NormState& state() const { return state_; }
  /// Applies the norm alone.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& images) const {
    return engine::batch_norm(state_, images);
  }

 private:
  engine::NormState state_;
};

}  // namespace argosy::vision::ops
