#pragma once

#include <cstdint>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "argosy/vision/models/resnet.h"

namespace argosy::vision {

struct FaceNetOptions {
  int64_t num_keypoints = 15;  ///< the last layer gives x and y of each
};

/// The network of Paddle's tutorial on facial keypoints: a ResNet-18 with its 1000 outputs, then
///
///     linear 1000→512 · relu · dropout 0.1 · linear 512→2·K
///
/// Parameters (12,217,414 with K = 15) have the tutorial's names: backbone.* (those of ResNet, so
/// weights of a ResNet-18 fit there), outLayer1.0, outLayer2.
///
/// Shape: [N, 3, H, W] → [N, 2·K], x₀ y₀ x₁ y₁ …; H and W as for ResNet, 96 in the tutorial.
/// Initialisation: ResNet's; libtorch's for the linear layers.
/// Errors: UsageError for another shape, naming it.
/// Source: paddlepaddle.org.cn, tutorial "Detecting facial keypoints".
class FaceNetImpl final : public torch::nn::Cloneable<FaceNetImpl> {
 public:
  explicit FaceNetImpl(const FaceNetOptions& options = {});
  explicit FaceNetImpl(int64_t num_keypoints) : FaceNetImpl(FaceNetOptions{num_keypoints}) {}
  void reset() override;
  at::Tensor forward(const at::Tensor& images);

 private:
  FaceNetOptions options_;
  ResNet backbone_{nullptr};
  torch::nn::Sequential out_layer1_{nullptr};
  torch::nn::Linear out_layer2_{nullptr};
};

/// Holder of a FaceNetImpl; copies refer to the same model. `FaceNet(15)`.
class FaceNet : public torch::nn::ModuleHolder<FaceNetImpl> {
 public:
  using torch::nn::ModuleHolder<FaceNetImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = FaceNetImpl;
  explicit FaceNet(const FaceNetOptions& options)
      : ModuleHolder<FaceNetImpl>(std::make_shared<FaceNetImpl>(options)) {}
};

}  // namespace argosy::vision
