#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "argosy/engine/synced_norm.h"

namespace argosy::vision {

struct ResNetOptions {
  int64_t depth = 18;               ///< 18, 34, 50, 101 or 152
  int64_t num_classes = 1000;       ///< width of the last layer
  int64_t in_channels = 3;          ///< of the images
  bool zero_init_residual = false;  ///< each block begins as the identity
  int64_t groups = 1;               ///< of the 3×3 convolutions; from depth 50 on
  int64_t width_per_group = 64;     ///< of the 3×3 convolutions of layer1; from depth 50 on
};

/// Residual networks of He et al. 2015, with the stride of a bottleneck at its 3×3 convolution;
/// with groups ResNeXt (Xie et al. 2017), with a larger width wide ones (Zagoruyko et al. 2016).
/// Names of parameters, their initialisation and the order in which random numbers are drawn are
/// torchvision's: weights of its models fit by name, and the same seed gives the same model.
///
/// Parameters with 1,000 classes: 11,689,512 (18), 21,797,672 (34), 25,557,032 (50), 44,549,160
/// (101), 60,192,808 (152). Shape: [N, in_channels, H, W] → [N, num_classes]; H and W are 33 or
/// more for batches of one while training, where batch norm wants more than one value for each
/// channel. Errors: UsageError for another depth, for groups or a width that the depth does not
/// take, another shape of the images, naming them. Source: torchvision.models.resnet.
class ResNetImpl final : public torch::nn::Cloneable<ResNetImpl> {
 public:
  explicit ResNetImpl(const ResNetOptions& options = {});
  void reset() override;
  at::Tensor forward(const at::Tensor& images);

 private:
  void initialise();

  ResNetOptions options_;
  torch::nn::Conv2d conv1_{nullptr};
  engine::BatchNorm2d bn1_{nullptr};
  std::vector<torch::nn::Sequential> layers_;
  torch::nn::Linear fc_{nullptr};
};

/// Holder of a ResNetImpl; copies refer to the same model. `ResNet({.depth = 50})`.
class ResNet : public torch::nn::ModuleHolder<ResNetImpl> {
 public:
  using torch::nn::ModuleHolder<ResNetImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = ResNetImpl;
  explicit ResNet(const ResNetOptions& options)
      : ModuleHolder<ResNetImpl>(std::make_shared<ResNetImpl>(options)) {}
};

/// Options of a network whose name fixes its depth and widths.
struct NamedResNetOptions {
  int64_t num_classes = 1000;       ///< width of the last layer
  int64_t in_channels = 3;          ///< of the images
  bool zero_init_residual = false;  ///< each block begins as the identity
};

/// torchvision's functions of these names, without weights: `resnet18({.num_classes = 10})`.
/// checkpoint::load_weights() reads the files of weights that belong to them.
[[nodiscard]] ResNet resnet18(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnet34(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnet50(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnet101(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnet152(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnext50_32x4d(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnext101_32x8d(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet resnext101_64x4d(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet wide_resnet50_2(const NamedResNetOptions& options = {});
[[nodiscard]] ResNet wide_resnet101_2(const NamedResNetOptions& options = {});

}  // namespace argosy::vision
