#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

// Internal to the room: what is known of an operator that is about to run.
namespace argosy::engine {

/// Where ComputedTwice hears of operators: below autograd, and nothing that C++ programs use is
/// there.
constexpr c10::DispatchKey kHeardOf = c10::DispatchKey::Fake;

/// Sizes and types of the tensors among the arguments.
[[nodiscard]] inline std::vector<int64_t> sizes_of_arguments(const c10::FunctionSchema& schema,
                                                             const torch::jit::Stack& stack) {
  std::vector<int64_t> sizes;
  for (const c10::IValue& value : torch::jit::last(stack, schema.arguments().size())) {
    if (value.isTensor() && value.toTensor().defined()) {
      const at::Tensor& tensor = value.toTensor();
      sizes.push_back(static_cast<int64_t>(tensor.scalar_type()));
      sizes.push_back(tensor.dim());
      sizes.insert(sizes.end(), tensor.sizes().begin(), tensor.sizes().end());
    }
  }
  return sizes;
}

/// Whether an operator's results are its own, and the same each time.
[[nodiscard]] inline bool is_function(const c10::FunctionSchema& schema) {
  const auto aliases = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr;
  };
  const auto draws = [](const c10::Argument& argument) { return argument.name() == "generator"; };
  const auto is_tensor = [](const c10::Argument& argument) {
    return argument.type()->kind() == c10::TypeKind::TensorType;
  };
  return !schema.returns().empty() && std::ranges::all_of(schema.returns(), is_tensor) &&
         std::ranges::none_of(schema.arguments(), aliases) &&
         std::ranges::none_of(schema.returns(), aliases) &&
         std::ranges::none_of(schema.arguments(), draws) &&
         schema.name().find("dropout") == std::string::npos &&
         schema.name().find("rand") == std::string::npos;  // rand_like has no generator
}

/// The same memory in a tensor of its own, so that no graph hangs on it.
[[nodiscard]] inline at::Tensor apart(const at::Tensor& tensor,
                                      const c10::VariableVersion& version) {
  return tensor.defined() ? at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
                                version, /*allow_tensor_metadata_change=*/true))
                          : tensor;
}

}  // namespace argosy::engine
