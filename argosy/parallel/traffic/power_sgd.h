#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/engine/named.h"
#include "argosy/parallel/traffic/gradient_compressor.h"
#include "argosy/parallel/traffic/traffic_options.h"

namespace argosy::parallel {

/// Averages the gradient of a matrix, [rows, all other dims], as the product of two thin ones:
///
///     M = gradient + error            of each virtual rank
///     P = average of M · Q over them, orthonormal columns
///     Q = average of Mᵀ · P over them
///     average gradient = P · Qᵀ,  error = M - P · Qᵀ
///
/// Vectors, and matrices that would not become much smaller, are averaged as they are. Ranks have
/// the same P and Q, and multiply them themselves: equal machines have the same bits, and on unlike
/// ones weights may drift apart in the last bits (DdpOptions::check_drift tells).
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
  void deal_to(const std::shared_ptr<const comm::LeafDeal>& deal) override;
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
    at::Tensor error{};         // [virtual ranks of this process, rows · cols]
    at::Tensor transposed_q{};  // [rank, cols]
  };
  struct Part;  // of a bucket
  struct Pass;

  [[nodiscard]] Matrix* find(const at::Tensor& parameter);
  [[nodiscard]] std::shared_ptr<Pass> begin(const GradBucket& bucket);
  void prepare_q(Matrix& matrix, const at::TensorOptions& type) const;
  [[nodiscard]] at::Tensor begin_leaf(Pass& pass, const GradBucket& bucket, size_t leaf) const;
  void average_q(const Pass& pass) const;
  void finish(const Pass& pass) const;
  void finish(const Part& part, const at::Tensor& p, const at::Tensor& q) const;

  PowerSgdOptions options_;
  comm::Group group_;
  std::shared_ptr<const comm::LeafDeal> deal_;
  std::string first_;  // whose state has the number of steps
  std::vector<Matrix> matrices_{};
  std::unordered_map<const void*, size_t> places_{};
  int64_t steps_ = 0;
};

}  // namespace argosy::parallel
