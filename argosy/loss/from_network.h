#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace argosy::loss {

struct FromNetworkOptions {
  int64_t ignore_index = -100;  ///< targets that the network's mean leaves out
};

/// The loss of a network that computes it itself, because it takes the targets too: its output, the
/// mean over the targets that are not ignore_index. Language models do so, in the place of logits
/// for each token of the vocabulary, which would take much memory.
///
///     model.prepare(optimizer, loss::FromNetwork(), {metrics::Perplexity()});
///
/// Shape: output of one number; targets of any shape.
/// Errors: UsageError for an output of several numbers.
class FromNetwork final {
 public:
  explicit FromNetwork(const FromNetworkOptions& options = {}) : options_(options) {}

  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  /// Returns the number of targets that count. Waits for their device.
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  /// The same as a 0-dim tensor of f64; does not wait.
  [[nodiscard]] at::Tensor counted(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "cross_entropy"; }

 private:
  FromNetworkOptions options_;
};

}  // namespace argosy::loss
