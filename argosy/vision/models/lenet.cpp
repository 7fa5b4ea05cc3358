#include "argosy/vision/models/lenet.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "argosy/base/check.h"
#include "argosy/vision/models/input_check.h"

namespace argosy::vision {

namespace nn = torch::nn;

LeNetImpl::LeNetImpl(const LeNetOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_classes >= 0,
               "vision.LeNet",
               "num_classes must not be negative, got {}",
               options.num_classes);
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void LeNetImpl::reset() {
  features_ = register_module("features",
                              nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 6, 3).padding(1)),
                                             nn::ReLU(),
                                             nn::MaxPool2d(nn::MaxPool2dOptions(2)),
                                             nn::Conv2d(nn::Conv2dOptions(6, 16, 5)),
                                             nn::ReLU(),
                                             nn::MaxPool2d(nn::MaxPool2dOptions(2))));
  if (options_.num_classes > 0) {
    fc_ = register_module("fc",
                          nn::Sequential(nn::Linear(16 * 5 * 5, 120),
                                         nn::Linear(120, 84),
                                         nn::Linear(84, options_.num_classes)));
  }
}

at::Tensor LeNetImpl::forward(const at::Tensor& images) {
  check_gray_28x28(images, "vision.LeNet");
  at::Tensor x = features_->forward(images);
  return fc_.is_empty() ? x : fc_->forward(x.flatten(1));
}

}  // namespace argosy::vision
