#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

// Internal to the room: what summary() sees of a forward.
namespace argosy::engine {

/// An operator that was called by the model itself, not by another operator.
struct SeenOperator {
  std::string name{};  ///< "conv2d"
  int64_t owner = -1;  ///< of the first input that has one; -1: none
  std::vector<int64_t> output_shape{};
  int64_t output_bytes = 0;   ///< of outputs that share no memory with an input
  int64_t multiply_adds = 0;  ///< its own, or those of the operators that it calls
  at::Tensor output{};        ///< a copy of the first one, with WatchOptions::outputs
  at::Tensor input{};         ///< a copy of the first one without an owner, with inputs
};

/// The owner of the memory of a tensor, or -1.
using OwnerOf = std::function<int64_t(const at::Tensor&)>;

struct WatchOptions {
  bool outputs = false;  ///< of operators that have an owner
  bool inputs = false;   ///< the same
};

/// Runs `body` and returns the operators that this thread's dispatcher saw meanwhile, in the order
/// of their ends. Left out: what has no tensor among inputs or outputs, views, copies.
/// Errors: UsageError inside of another one on the same thread.
[[nodiscard]] std::vector<SeenOperator> watch_operators(const OwnerOf& owner_of,
                                                        const std::function<void()>& body,
                                                        const WatchOptions& options = {});

}  // namespace argosy::engine
