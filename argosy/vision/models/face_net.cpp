#include "argosy/vision/models/face_net.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>

#include "argosy/base/check.h"

namespace argosy::vision {

namespace nn = torch::nn;

FaceNetImpl::FaceNetImpl(const FaceNetOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_keypoints >= 1,
               "vision.FaceNet",
               "num_keypoints must be positive, got {}",
               options.num_keypoints);
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void FaceNetImpl::reset() {
  backbone_ = register_module("backbone", resnet18());
  out_layer1_ = register_module(
      "outLayer1", nn::Sequential(nn::Linear(1000, 512), nn::ReLU(), nn::Dropout(0.1)));
  out_layer2_ = register_module("outLayer2", nn::Linear(512, 2 * options_.num_keypoints));
}

at::Tensor FaceNetImpl::forward(const at::Tensor& images) {
  return out_layer2_(out_layer1_->forward(backbone_(images)));
}

}  // namespace argosy::vision
