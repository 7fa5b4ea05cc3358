#include "argosy/checkpoint/paddle_names.h"

#include <functional>
#include <string_view>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace argosy::checkpoint {
namespace {

/// "norm._mean" with "_mean" and "running_mean" → "norm.running_mean".
bool replace_last(std::string& name, std::string_view word, std::string_view by) {
  const bool fits = name.ends_with(word) && name.size() > word.size() &&
                    name[name.size() - word.size() - 1] == '.';
  if (fits) {
    name.replace(name.size() - word.size(), word.size(), by);
  }
  return fits;
}

}  // namespace

std::set<std::string> linear_weights(const torch::nn::Module& module) {
  // (named_modules() asks for a module in a shared_ptr.)
  std::set<std::string> names;
  const std::function<void(const torch::nn::Module&, const std::string&)> visit =
      [&](const torch::nn::Module& each, const std::string& prefix) {
        if (dynamic_cast<const torch::nn::LinearImpl*>(&each) != nullptr) {
          names.insert(prefix + "weight");
        }
        for (const auto& child : each.named_children()) {
          visit(*child.value(), prefix + child.key() + ".");
        }
      };
  visit(module, "");
  return names;
}

engine::StateDict from_paddle(const engine::StateDict& dict, const torch::nn::Module& module) {
  const std::set<std::string> linear = linear_weights(module);
  engine::StateDict result;
  for (const auto& [old_name, tensor] : dict) {
    std::string name = old_name;
    if (!replace_last(name, "_mean", "running_mean")) {
      replace_last(name, "_variance", "running_var");
    }
    result.set(name, linear.contains(name) && tensor.dim() == 2 ? tensor.t() : tensor);
  }
  return result;
}

engine::StateDict to_paddle(const engine::StateDict& dict, const torch::nn::Module& module) {
  const std::set<std::string> linear = linear_weights(module);
  engine::StateDict result;
  for (const auto& [old_name, tensor] : dict) {
    std::string name = old_name;
    if (replace_last(name, "num_batches_tracked", "")) {
      continue;
    }
    if (!replace_last(name, "running_mean", "_mean")) {
      replace_last(name, "running_var", "_variance");
    }
    result.set(name, linear.contains(old_name) ? tensor.t() : tensor);
  }
  return result;
}

}  // namespace argosy::checkpoint
