#pragma once

#include <cstdint>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

namespace argosy::vision {

struct LeNetOptions {
  int64_t num_classes = 10;  ///< width of the last layer; 0: no classifier, forward gives features
};

/// LeNet for 28×28 gray images, as paddle.vision.models.LeNet has it:
///
///     conv 1→6 3×3 pad 1 · relu · pool 2 · conv 6→16 5×5 · relu · pool 2 · linear 400→120→84→n
///
/// There is no activation between the linear layers; that is how Paddle's is written, and its
/// figures are for that. Names of the parameters: features.0, features.3, fc.0, fc.1, fc.2.
///
/// Shape: [N, 1, 28, 28] → [N, num_classes]; with num_classes = 0 → [N, 16, 5, 5].
/// Initialisation: libtorch's (Kaiming-uniform with a = √5, biases uniform in ±1/√fan_in), not
/// Paddle's (normal for convolutions, Xavier-uniform for linear layers, zero biases).
/// Errors: UsageError for another shape, naming it.
/// Source: LeCun et al., "Gradient-based learning applied to document recognition", 1998;
/// PaddlePaddle 3.3, python/paddle/vision/models/lenet.py.
class LeNetImpl final : public torch::nn::Cloneable<LeNetImpl> {
 public:
  explicit LeNetImpl(const LeNetOptions& options = {});
  void reset() override;
  at::Tensor forward(const at::Tensor& images);

 private:
  LeNetOptions options_;
  torch::nn::Sequential features_{nullptr};
  torch::nn::Sequential fc_{nullptr};
};

/// Holder of a LeNetImpl; copies refer to the same model. `LeNet({.num_classes = 5})`.
class LeNet : public torch::nn::ModuleHolder<LeNetImpl> {
 public:
  using torch::nn::ModuleHolder<LeNetImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = LeNetImpl;
  explicit LeNet(const LeNetOptions& options)
      : ModuleHolder<LeNetImpl>(std::make_shared<LeNetImpl>(options)) {}
};

}  // namespace argosy::vision
