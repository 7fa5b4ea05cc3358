#include "argosy/vision/models/cifar_net.h"

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/vision/models/input_check.h"

namespace argosy::vision {

namespace nn = torch::nn;

CifarNetImpl::CifarNetImpl(const CifarNetOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_classes >= 1,
               "vision.CifarNet",
               "num_classes must be positive, got {}",
               options.num_classes);
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void CifarNetImpl::reset() {
  conv1_ = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(3, 32, 3)));
  conv2_ = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3)));
  conv3_ = register_module("conv3", nn::Conv2d(nn::Conv2dOptions(64, 64, 3)));
  linear1_ = register_module("linear1", nn::Linear(64 * 4 * 4, 64));
  linear2_ = register_module("linear2", nn::Linear(64, options_.num_classes));
}

at::Tensor CifarNetImpl::forward(const at::Tensor& images) {
  check_images(images, {3, 32, 32}, "vision.CifarNet");
  // The largest of four, then relu: the same bits as the other way round, from a quarter of them.
  at::Tensor x = at::max_pool2d(conv1_(images.contiguous(at::MemoryFormat::ChannelsLast)), 2);
  x = at::max_pool2d(conv2_(x.relu_()), 2);
  x = conv3_(x.relu_()).relu_();
  return linear2_(linear1_(x.flatten(1)).relu_());
}

}  // namespace argosy::vision
