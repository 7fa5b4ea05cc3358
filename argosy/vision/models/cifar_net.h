#pragma once

#include <cstdint>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace argosy::vision {

struct CifarNetOptions {
  int64_t num_classes = 10;  ///< width of the last layer
};

/// The convolutional network of Paddle's tutorial on CIFAR-10:
///
///     conv 3→32 3×3 · relu · pool 2 · conv 32→64 3×3 · relu · pool 2 · conv 64→64 3×3 · relu
///     · linear 1024→64 · relu · linear 64→n
///
/// The convolutions have no padding: 32 → 30 → 15 → 13 → 6 → 4 pixels, 64·4·4 = 1024 features.
/// Parameters (122,570 with ten classes) have the tutorial's names: conv1, conv2, conv3, linear1,
/// linear2.
///
/// Shape: [N, 3, 32, 32] → [N, num_classes].
/// Initialisation: libtorch's (Kaiming-uniform with a = √5, biases uniform in ±1/√fan_in), not
/// Paddle's (normal for convolutions, Xavier-uniform for linear layers, zero biases).
/// Errors: UsageError for another shape, naming it.
/// Source: paddlepaddle.org.cn, tutorial "Image classification with a convolutional network".
class CifarNetImpl final : public torch::nn::Cloneable<CifarNetImpl> {
 public:
  explicit CifarNetImpl(const CifarNetOptions& options = {});
  explicit CifarNetImpl(int64_t num_classes) : CifarNetImpl(CifarNetOptions{num_classes}) {}
  void reset() override;
  at::Tensor forward(const at::Tensor& images);

 private:
  CifarNetOptions options_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  torch::nn::Linear linear1_{nullptr}, linear2_{nullptr};
};

/// Holder of a CifarNetImpl; copies refer to the same model. `CifarNet(10)`.
class CifarNet : public torch::nn::ModuleHolder<CifarNetImpl> {
 public:
  using torch::nn::ModuleHolder<CifarNetImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = CifarNetImpl;
  explicit CifarNet(const CifarNetOptions& options)
      : ModuleHolder<CifarNetImpl>(std::make_shared<CifarNetImpl>(options)) {}
};

}  // namespace argosy::vision
