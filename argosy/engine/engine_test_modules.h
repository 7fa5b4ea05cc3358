#pragma once

#include <torch/torch.h>

namespace argosy::engine::small_models {

/// Convolution and batch norm in a Sequential, a linear layer: nesting, digits as names, buffers.
struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    features = register_module(
        "features",
        torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)),
                              torch::nn::BatchNorm2d(4),
                              torch::nn::ReLU(),
                              torch::nn::Functional(torch::relu)));
    fc = register_module("fc", torch::nn::Linear(4, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return fc->forward(features->forward(x).mean({2, 3})); }
  torch::nn::Sequential features{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(SmallNet);

}  // namespace argosy::engine::small_models
