#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace argosy::parallel::ddp {

/// The parameters of a wrapped module as they were at construction, to detect changes since then.
///
/// Trainable parameters are those with requires_grad, each once: a tensor registered under two
/// names (tied weights) counts under the first. Everything else in the room refers to a parameter
/// by its index among them. Weights of sparse embeddings, whose gradients travel beside the
/// buckets, are not among them: see SparseGradients.
class ParameterTable final {
 public:
  /// Errors: UsageError if nothing is trainable. UsageError naming a trainable parameter that is
  /// not a dense tensor of a type that can be averaged, on the device of the first one.
  explicit ParameterTable(const torch::nn::Module& module);

  [[nodiscard]] size_t size() const { return trainable_.size(); }
  [[nodiscard]] std::span<const at::Tensor> tensors() const { return trainable_; }
  /// Returns the one device of all trainable parameters, whose thread alone runs their hooks.
  [[nodiscard]] at::Device device() const { return trainable_.front().device(); }
  [[nodiscard]] const std::string& name(size_t index) const { return names_[index]; }
  /// Returns "fc.weight, fc.bias and 3 more".
  [[nodiscard]] std::string names(std::span<const size_t> indices) const;

  /// Errors: UsageError naming the parameter that was added, removed, replaced, frozen, unfrozen,
  /// or changed in dtype, shape or memory layout since construction.
  /// Cost: one walk over the module; no tensor is read.
  void check_unchanged(const torch::nn::Module& module) const;
  /// Accepts the current strides as the right ones.
  void accept_layout();
  /// Returns a digest of these strides.
  [[nodiscard]] uint32_t layout() const { return layout_; }

 private:
  struct Entry {  // one per registered name
    std::string name{};
    at::Tensor tensor{};
    at::ScalarType dtype{};
    std::vector<int64_t> sizes{};
    std::vector<int64_t> strides{};
    bool requires_grad = false;
  };

  void check_entry(const Entry& entry, const at::Tensor& now) const;
  [[noreturn]] void name_the_difference(const torch::nn::Module& module) const;

  std::vector<Entry> entries_;
  std::vector<at::Tensor> trainable_;
  std::vector<std::string> names_;
  uint32_t layout_ = 0;
};

/// Returns the name used in our messages: "f32", "bf16", "i64" ….
[[nodiscard]] std::string dtype_name(at::ScalarType dtype);

}  // namespace argosy::parallel::ddp
