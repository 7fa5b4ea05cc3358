#include "argosy/vision/models/digit_net.h"

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/vision/models/input_check.h"

namespace argosy::vision {

namespace nn = torch::nn;

DigitNetImpl::DigitNetImpl(const DigitNetOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_classes >= 1,
               "vision.DigitNet",
               "num_classes must be positive, got {}",
               options.num_classes);
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void DigitNetImpl::reset() {
  conv1_ = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 20, 5).padding(2)));
  conv2_ = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(20, 20, 5).padding(2)));
  fc_ = register_module("fc", nn::Linear(20 * 7 * 7, options_.num_classes));
}

at::Tensor DigitNetImpl::forward(const at::Tensor& images) {
  check_gray_28x28(images, "vision.DigitNet");
  // The largest of four, then relu: the same bits as the other way round, from a quarter of them.
  at::Tensor x = at::max_pool2d(conv1_(as_channels_last(images)), 2).relu_();
  x = at::max_pool2d(conv2_(x), 2).relu_();
  return fc_(x.flatten(1));
}

}  // namespace argosy::vision
