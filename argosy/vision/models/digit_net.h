#pragma once

#include <cstdint>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace argosy::vision {

struct DigitNetOptions {
  int64_t num_classes = 10;  ///< width of the last layer
};

/// The convolutional network of Paddle's lesson on handwritten digits:
///
///     [conv 5×5 pad 2 · relu · max pool 2] with 20, then 20 channels · linear 980→n
///
/// Parameters (20,350 with ten classes) have the lesson's names: conv1, conv2, fc. The lesson's
/// softmax belongs to the loss (cross_entropy); this gives what goes into it.
///
/// Shape: [N, 1, 28, 28] → [N, num_classes].
/// Initialisation: libtorch's (Kaiming-uniform with a = √5, biases uniform in ±1/√fan_in), not
/// Paddle's (normal for convolutions, Xavier-uniform for linear layers, zero biases).
/// Errors: UsageError for another shape, naming it.
/// Source: Baidu AI Studio, "Deep learning from zero", lesson "Handwritten digits".
class DigitNetImpl final : public torch::nn::Cloneable<DigitNetImpl> {
 public:
  explicit DigitNetImpl(const DigitNetOptions& options = {});
  explicit DigitNetImpl(int64_t num_classes) : DigitNetImpl(DigitNetOptions{num_classes}) {}
  void reset() override;
  at::Tensor forward(const at::Tensor& images);

 private:
  DigitNetOptions options_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

/// Holder of a DigitNetImpl; copies refer to the same model. `DigitNet(5)`.
class DigitNet : public torch::nn::ModuleHolder<DigitNetImpl> {
 public:
  using torch::nn::ModuleHolder<DigitNetImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = DigitNetImpl;
  explicit DigitNet(const DigitNetOptions& options)
      : ModuleHolder<DigitNetImpl>(std::make_shared<DigitNetImpl>(options)) {}
};

}  // namespace argosy::vision
