#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

// Internal to the room: of ComputedTwice.
namespace argosy::engine {

/// Results of the first of two equal computations, for the second.
class KeptResults final {
 public:
  using Keeps = std::function<bool(const std::string& operator_name)>;
  explicit KeptResults(Keeps keeps) : keeps_(std::move(keeps)) {}

  /// True if the results of this call are to be kept, or have been.
  [[nodiscard]] bool wants(const c10::FunctionSchema& schema, const torch::jit::Stack& stack);
  /// Keeps the results at the end of the stack.
  void keep(const c10::FunctionSchema& schema,
            std::vector<int64_t> sizes,
            const torch::jit::Stack& stack);
  /// Puts what was kept in the place of the arguments, once; false: there is nothing that fits.
  [[nodiscard]] bool give(const c10::FunctionSchema& schema,
                          const std::vector<int64_t>& sizes,
                          torch::jit::Stack& stack);

 private:
  struct Result {
    std::vector<int64_t> arguments{};  // their sizes
    std::vector<at::Tensor> tensors{};
    std::vector<int64_t> versions{};
  };

  Keeps keeps_;                                    // empty: nothing
  std::unordered_map<std::string, bool> known_{};  // by operator
  std::unordered_map<std::string, std::deque<Result>> results_{};
};

}  // namespace argosy::engine
