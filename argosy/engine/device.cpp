#include "argosy/engine/device.h"

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace argosy::engine {
namespace {

std::optional<c10::Device> device_of_first(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) {
      return tensor.device();
    }
  }
  return std::nullopt;
}

std::optional<c10::Device> device_of_parameters(const torch::nn::Module& module) {
  std::optional<c10::Device> found = device_of_first(module.parameters(/*recurse=*/false));
  for (const auto& child : module.children()) {
    if (found.has_value()) {
      break;
    }
    found = device_of_parameters(*child);
  }
  return found;
}

}  // namespace

c10::Device device_of(const torch::nn::Module& module) {
  if (const auto found = device_of_parameters(module)) {
    return *found;
  }
  return device_of_first(module.buffers()).value_or(c10::Device(c10::kCPU));
}

}  // namespace argosy::engine
