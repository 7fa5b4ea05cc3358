#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

// Internal to the room: what summary() learns from a forward pass.
namespace argosy::engine {

/// An operator that the model itself called, not another operator.
struct SeenOperator {
  std::string name{};  ///< "conv2d"
  int64_t owner = -1;  ///< owner of the first input that has one; -1: none
  std::vector<int64_t> output_shape{};
  int64_t output_bytes = 0;   ///< of outputs that share no memory with an input
  int64_t multiply_adds = 0;  ///< its own, or those of operators it calls
  at::Tensor output{};        ///< a copy of the first one, with WatchOptions::outputs
  at::Tensor input{};         ///< a copy of the first one without an owner, with inputs
};

/// Returns the owner of a tensor's memory, or -1.
using OwnerOf = std::function<int64_t(const at::Tensor&)>;

struct WatchOptions {
  bool outputs = false;  ///< keep outputs of operators with an owner
  bool inputs = false;   ///< keep inputs of operators with an owner
};

/// Runs `body` and returns the operators that this thread's dispatcher saw meanwhile, in the order
/// in which they ended. Leaves out views, copies, and operators without a tensor among inputs or
/// outputs.
/// Errors: UsageError inside another watch on the same thread.
[[nodiscard]] std::vector<SeenOperator> watch_operators(const OwnerOf& owner_of,
                                                        const std::function<void()>& body,
                                                        const WatchOptions& options = {});

}  // namespace argosy::engine
