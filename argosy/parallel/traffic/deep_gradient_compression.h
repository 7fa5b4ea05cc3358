#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/optim/decay.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/traffic/gradient_compressor.h"
#include "argosy/parallel/traffic/traffic_options.h"

namespace argosy::parallel {

/// Sends the largest elements of a gradient with momentum, and keeps the others for later:
///
///     u = momentum * u + gradient          of each virtual rank, with its weight decay
///     v = v + u                            nesterov: u = momentum * (u + gradient); v = v + u + g
///     send the largest |v|; set u and v to zero there
///     w = w - lr * average over them of what was sent
///
/// The momentum is in u, so the step has none. ClipGradByNorm acts on a virtual rank's own
/// gradient, with clip_norm / sqrt(virtual ranks), before it is added. One backward that averages
/// for each step. Where an update is dropped after it, by zero_grad(), its gradients stay in u and
/// v, and what was sent is lost. Cost: an all-gather of 8 bytes for each element that is sent,
/// (virtual ranks - 1) times, and an all-reduce of the small parameters. Source: Lin et al., "Deep
/// Gradient Compression", ICLR 2018 (arXiv 1712.01887), algorithm 1 with momentum factor masking;
/// Paddle 3.3, DGCMomentumOptimizer.
class DeepGradientCompression final : public GradientCompressor {
 public:
  /// `optimizer`: a Momentum, or an SGD with momentum and without dampening, of the wrapped model's
  /// parameters. Errors: UsageError for another one, and for clipping by anything but
  /// ClipGradByNorm.
  DeepGradientCompression(const optim::OptimizerImpl& optimizer,
                          const comm::Group& group,
                          const DgcOptions& options);
  /// Says before there is a group whether it goes with an optimizer. Errors: as the constructor's.
  static void check_optimizer(const optim::OptimizerImpl& optimizer);

  [[nodiscard]] std::string name() const override { return "dgc"; }
  void deal_to(const std::shared_ptr<const comm::LeafDeal>& deal) override;
  [[nodiscard]] BucketWork reduce(GradBucket& bucket) override;
  /// Where `inner` throws, gradients and what is remembered stay as they were.
  void step(optim::OptimizerImpl& inner) override;
  void drop_update() override;
  void add_state(optim::OptimizerState& state) const override;
  void take_state(optim::OptimizerState& state) override;

  /// Returns the share of elements that the next update leaves out.
  [[nodiscard]] double sparsity_now() const;

 private:
  struct Kept {
    std::string name{};
    at::Tensor parameter{};
    optim::WeightDecay decay{};
    at::Tensor momentum{};    // u, [virtual ranks of this process, elements]
    at::Tensor unsent{};      // v, as u
    bool is_reduced = false;  // since the last step
  };
  struct Pass;  // of a bucket

  [[nodiscard]] Kept* find(const at::Tensor& parameter);
  [[nodiscard]] std::shared_ptr<Pass> begin(const GradBucket& bucket);
  void begin_update(Kept& kept) const;
  [[nodiscard]] at::Tensor fill_leaf(const Pass& pass, const GradBucket& bucket, int64_t leaf);
  [[nodiscard]] at::Tensor own_gradient(const Kept& kept, const at::Tensor& gradient) const;
  void gather_up(const Kept& kept, const at::Tensor& gradient, int64_t leaf) const;
  [[nodiscard]] int64_t sent_of(const Kept& kept) const;
  [[nodiscard]] int64_t leaves() const;
  void finish(const Pass& pass) const;

  DgcOptions options_;
  comm::Group group_;
  std::shared_ptr<const comm::LeafDeal> deal_;
  std::string first_;  // whose state has the number of steps
  double momentum_ = 0;
  bool nesterov_ = false;
  double clip_norm_ = 0;  // of the average's; 0: none
  std::vector<Kept> kept_{};
  std::unordered_map<const void*, size_t> places_{};
  int64_t steps_ = 0;
};

}  // namespace argosy::parallel
