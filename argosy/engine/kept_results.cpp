#include "argosy/engine/kept_results.h"

#include <cstddef>

#include "argosy/engine/operator_call.h"

namespace argosy::engine {
namespace {

/// Whether this call of an attention or a recurrent layer drops something.
bool drops(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    const c10::IValue& value = torch::jit::peek(stack, i, schema.arguments().size());
    if ((name == "dropout_p" || name == "dropout") && value.isDouble() && value.toDouble() != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool KeptResults::wants(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  if (keeps_ == nullptr) {
    return false;
  }
  const auto [place, is_new] =
      known_.try_emplace(schema.name() + '.' + schema.overload_name(), false);
  if (is_new) {
    place->second = is_function(schema) && keeps_(schema.name());
  }
  return place->second && !drops(schema, stack);
}

void KeptResults::keep(const c10::FunctionSchema& schema,
                       std::vector<int64_t> sizes,
                       const torch::jit::Stack& stack) {
  Result result{.arguments = std::move(sizes)};
  for (const c10::IValue& value : torch::jit::last(stack, schema.returns().size())) {
    const at::Tensor& tensor = value.toTensor();
    result.tensors.push_back(
        tensor.defined() ? apart(tensor, tensor.unsafeGetTensorImpl()->version_counter()) : tensor);
    result.versions.push_back(tensor.defined() ? tensor._version() : 0);
  }
  results_[schema.name()].push_back(std::move(result));
}

bool KeptResults::give(const c10::FunctionSchema& schema,
                       const std::vector<int64_t>& sizes,
                       torch::jit::Stack& stack) {
  std::deque<Result>& kept = results_[schema.name()];
  if (kept.empty()) {
    return false;
  }
  const Result result = std::move(kept.front());
  kept.pop_front();
  bool same = result.arguments == sizes;
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    same = same && (!result.tensors[i].defined() ||
                    static_cast<int64_t>(result.tensors[i]._version()) == result.versions[i]);
  }
  if (same) {
    torch::jit::drop(stack, schema.arguments().size());
    for (const at::Tensor& tensor : result.tensors) {
      stack.emplace_back(apart(tensor, c10::VariableVersion(0)));
    }
  }
  return same;
}

}  // namespace argosy::engine
