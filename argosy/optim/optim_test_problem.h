#pragma once

#include <string>
#include <vector>

#include <torch/torch.h>

#include "argosy/engine/named.h"

namespace argosy::optim::testing {

/// Parameters of many kinds with a fixed random sequence of gradients: matrix, vector, 0-dim,
/// empty, channels_last, larger than a block of the kernels, transposed.
inline engine::NamedTensors make_parameters(torch::ScalarType dtype, int64_t seed = 1) {
  torch::manual_seed(seed);
  const auto random = [&](torch::IntArrayRef shape) { return torch::randn(shape, dtype); };
  engine::NamedTensors list{
      {"fc.weight", random({33, 17})},
      {"fc.bias", random({33})},
      {"scale", random({})},
      {"empty", random({0, 3})},
      {"conv.weight", random({8, 6, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast)},
      {"big", random({300, 301})},
      {"transposed", random({7, 11}).t()},
  };
  for (auto& [name, tensor] : list) {
    tensor.requires_grad_(true);
  }
  return list;
}

/// The gradients of step `step`: equal for equal seeds, in the parameter's layout.
inline void set_gradients(const engine::NamedTensors& parameters, int64_t step) {
  torch::manual_seed(1000 + step);
  for (const auto& [name, parameter] : parameters) {
    torch::Tensor grad = torch::empty_like(parameter.detach());
    grad.copy_(torch::randn(parameter.sizes(), parameter.options().requires_grad(false)));
    parameter.mutable_grad() = grad;
  }
}

inline std::vector<torch::Tensor> tensors(const engine::NamedTensors& parameters) {
  std::vector<torch::Tensor> result;
  for (const auto& [name, tensor] : parameters) {
    result.push_back(tensor);
  }
  return result;
}

inline engine::NamedTensors clone(const engine::NamedTensors& parameters) {
  engine::NamedTensors result;
  for (const auto& [name, tensor] : parameters) {
    result.emplace_back(name, tensor.detach().clone().requires_grad_(true));
  }
  return result;
}

/// Largest difference over the largest value, over all parameters.
inline double difference(const engine::NamedTensors& a, const engine::NamedTensors& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].second.numel() > 0) {
      const double top = b[i].second.detach().abs().max().item<double>();
      const double gap = (a[i].second - b[i].second).detach().abs().max().item<double>();
      worst = std::max(worst, gap / std::max(top, 1e-30));
    }
  }
  return worst;
}

inline bool same_bits(const engine::NamedTensors& a, const engine::NamedTensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i].second, b[i].second)) {
      return false;
    }
  }
  return true;
}

}  // namespace argosy::optim::testing
