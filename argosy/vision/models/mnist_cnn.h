#pragma once

#include <cstdint>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "argosy/engine/synced_norm.h"

namespace argosy::vision {

struct MnistCnnOptions {
  int64_t num_classes = 10;  ///< width of the last layer
};

/// The small convolutional network with batch normalization that MNIST tutorials train:
///
///     [conv 5×5 pad 2 · batch norm · relu · max pool 2] with 16, then 32 channels · linear
///
/// Parameters (29,034 with ten classes) are named conv1, bn1, conv2, bn2, fc.
///
/// Shape: [N, 1, 28, 28] → [N, num_classes].
/// Initialisation: libtorch's (Kaiming-uniform with a = √5; batch norm 1 and 0).
/// Errors: UsageError for another shape, naming it.
/// Cost: half of the step that the same layers take in libtorch's default layout: activations are
/// kept in channels_last, whatever the weights' layout is, and batch norm, pooling and relu are one
/// operator (ops::norm_pool_relu).
class MnistCnnImpl final : public torch::nn::Cloneable<MnistCnnImpl> {
 public:
  explicit MnistCnnImpl(const MnistCnnOptions& options = {});
  void reset() override;
  at::Tensor forward(const at::Tensor& images);

 private:
  MnistCnnOptions options_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  engine::BatchNorm2d bn1_{nullptr}, bn2_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

/// Holder of a MnistCnnImpl; copies refer to the same model. `MnistCnn({.num_classes = 5})`.
class MnistCnn : public torch::nn::ModuleHolder<MnistCnnImpl> {
 public:
  using torch::nn::ModuleHolder<MnistCnnImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = MnistCnnImpl;
  explicit MnistCnn(const MnistCnnOptions& options)
      : ModuleHolder<MnistCnnImpl>(std::make_shared<MnistCnnImpl>(options)) {}
};

}  // namespace argosy::vision
