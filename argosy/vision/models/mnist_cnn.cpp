#include "argosy/vision/models/mnist_cnn.h"

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/vision/models/input_check.h"
#include "argosy/vision/ops/norm_pool_relu.h"

namespace argosy::vision {

namespace nn = torch::nn;

MnistCnnImpl::MnistCnnImpl(const MnistCnnOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_classes >= 1,
               "vision.MnistCnn",
               "num_classes must be positive, got {}",
               options.num_classes);
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void MnistCnnImpl::reset() {
  conv1_ = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 5).padding(2)));
  bn1_ = register_module("bn1", engine::BatchNorm2d(16));
  conv2_ = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 5).padding(2)));
  bn2_ = register_module("bn2", engine::BatchNorm2d(32));
  fc_ = register_module("fc", nn::Linear(7 * 7 * 32, options_.num_classes));
}

at::Tensor MnistCnnImpl::forward(const at::Tensor& images) {
  check_gray_28x28(images, "vision.MnistCnn");
  at::Tensor x = ops::norm_pool_relu(bn1_, conv1_(as_channels_last(images)));
  x = ops::norm_pool_relu(bn2_, conv2_(x));
  return fc_(x.flatten(1));
}

}  // namespace argosy::vision
