#include "argosy/train/batch_pass.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/engine/host_fetch.h"
#include "argosy/parallel/ddp/graph.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {
namespace {

bool reaches(const at::Tensor& loss, const torch::nn::Module& network) {
  const std::vector<at::Tensor> parameters = network.parameters();
  std::vector<uint8_t> reached(parameters.size(), 0);
  parallel::ddp::mark_reachable({&loss, 1}, parameters, reached);
  return std::find(reached.begin(), reached.end(), 1) != reached.end();
}

}  // namespace

void BatchPass::take(const Tensors& batch) {
  inputs_ = training_step_ != nullptr ? core_.first_of(batch) : core_.inputs_of(batch, "train.fit");
}

void BatchPass::run(const Tensors& batch,
                    int64_t leaf,
                    int64_t together,
                    const TrainingStep::Place& place) {
  const LossValue loss = phases_.time(PhaseKind::kForward, [&] {
    return training_step_ != nullptr ? users_loss(batch, place) : usual_loss(batch);
  });
  // Both are on their way while the device computes gradients, so that it need not wait for the
  // host.
  engine::HostFetch value({loss.mean, loss.count});
  engine::HostFetch judged;
  if (training_step_ == nullptr && !core_.metrics.empty()) {
    judged = engine::HostFetch({outputs_.front(), labels_.front()});
  }
  phases_.time(PhaseKind::kBackward, [&] {
    core_.precision.backward(together == 1 ? loss.mean : loss.mean / static_cast<double>(together));
  });
  outputs_.clear();
  labels_.clear();
  if (const Tensors& both = judged.get(); !both.empty()) {
    core_.update_metrics({both[0]},
                         {both[1]});  // a metric that throws leaves no rank in its backward
  }
  const auto mean = value.get()[0].item<double>();
  const auto count = value.get()[1].item<double>();
  figures_.loss.update(mean, count);
  core_.optimizer->note_loss(mean);
  agreement_.add_batch(leaf, mean, count, samples_in(batch));
}

LossValue BatchPass::usual_loss(const Tensors& batch) {
  labels_ = core_.labels_of(batch, "train.fit");
  outputs_ = core_.forward(inputs_);
  return core_.loss_of(outputs_, labels_);
}

/// The loss of FitOptions::training_step is a mean over the batch's samples.
LossValue BatchPass::users_loss(const Tensors& batch, const TrainingStep::Place& place) {
  TrainingStep step(core_, model_, figures_.logged, batch, place);
  at::Tensor loss = training_step_(step);
  ARGOSY_CHECK(loss.defined() && loss.numel() == 1 && loss.requires_grad(),
               "train.training_step",
               "training_step must return the loss that fit() calls backward on: a single number "
               "with a gradient, got {}",
               !loss.defined()     ? "no tensor"
               : loss.numel() != 1 ? "a tensor of several numbers"
                                   : "a number without a gradient");
  ARGOSY_CHECK(
      step.ran_network(),
      "train.training_step",
      "training_step did not call step.forward(): the gradients of a network that is called "
      "directly are not averaged over the ranks");
  ARGOSY_CHECK(std::exchange(checked_, true) || reaches(loss, *core_.network.module),
               "train.training_step",
               "the loss of training_step does not depend on the network: backward reaches none of "
               "its parameters that are trained. Compute it from what step.forward() returns, "
               "without detach(), NoGradGuard or item()");
  return {.mean = std::move(loss),
          .count = at::scalar_tensor(static_cast<double>(samples_in(batch)), at::kDouble)};
}

Logs BatchPass::figures_now() const {
  Logs logs = core_.training_values();
  if (training_step_ != nullptr) {
    logs.add(figures_.logged.compute(core_.group));
  }
  return logs;
}

}  // namespace argosy::train::detail
