#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/named.h"
#include "argosy/parallel/traffic/gradient_compressor.h"

namespace argosy::parallel {

/// Options of PowerSgd. Names and defaults are those of PyTorch's PowerSGDState, 2.15.
struct PowerSgdOptions {
  /// Rank of the matrices that approximate a gradient. More: better, and more bytes.
  int64_t matrix_approximation_rank = 1;
  /// Updates before it begins, in which gradients are averaged as they are.
  int64_t start_power_sgd_iter = 1000;  ///< PyTorch's start_powerSGD_iter
  /// Gradients that would become smaller by less than this factor travel as they are.
  double min_compression_rate = 2;
  /// Adds what an update left out to the next one. Takes as much memory as the gradients.
  bool use_error_feedback = true;
  /// Begins each approximation at the last one.
  bool warm_start = true;
  uint64_t random_seed = 0;  ///< of the first approximation; equal on all ranks

  /// Errors: UsageError naming the field.
  void validate() const;
};

/// Averages the gradient of a matrix, [rows, all other dims], as the product of two thin ones:
///
///     M = gradient + error            of this rank
///     P = average of M · Q over the ranks, orthonormal columns
///     Q = average of Mᵀ · P over the ranks
///     average gradient = P · Qᵀ,  error = M - P · Qᵀ
///
/// Vectors, and matrices that would not become much smaller, are averaged as they are. All ranks
/// have the same bits.
/// Cost: two all-reduces for each bucket, of rank · (rows + cols) elements for a matrix.
/// Source: Vogels et al., "PowerSGD", NeurIPS 2019 (arXiv 1905.13727), algorithm 1 and 2; options
/// of torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py.
class PowerSgd final : public GradientCompressor {
 public:
  /// `parameters`: of the wrapped model, equal on all ranks of `group`.
  PowerSgd(const engine::NamedTensors& parameters,
           const comm::Group& group,
           const PowerSgdOptions& options);

  [[nodiscard]] std::string name() const override { return "powersgd"; }
  [[nodiscard]] BucketWork reduce(GradBucket& bucket) override;
  void step(optim::OptimizerImpl& inner) override;
  void add_state(optim::OptimizerState& state) const override;
  void take_state(optim::OptimizerState& state) override;

 private:
  struct Matrix {
    std::string name{};
    int64_t rows = 0, cols = 0, rank = 0;
    uint64_t number = 0;
    at::TensorOptions type{};
    at::Tensor error{};         // [rows, cols]
    at::Tensor transposed_q{};  // [rank, cols]
  };
  struct Part;  // of a bucket
  struct Pass;

  [[nodiscard]] Matrix* find(const at::Tensor& parameter);
  void begin(Matrix& matrix, Part& part) const;
  void finish(const Pass& pass) const;

  PowerSgdOptions options_;
  comm::Group group_;
  std::string first_;  // whose state has the number of steps
  std::vector<Matrix> matrices_{};
  std::unordered_map<const void*, size_t> places_{};
  int64_t steps_ = 0;
};

}  // namespace argosy::parallel
