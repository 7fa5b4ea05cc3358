#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/loss/loss.h"
#include "argosy/metrics/any_metric.h"
#include "argosy/metrics/evaluation_guard.h"
#include "argosy/metrics/exact_sum.h"
#include "argosy/optim/ema.h"
#include "argosy/optim/optimizer.h"
#include "argosy/optim/schedule_unit.h"
#include "argosy/train/network.h"
#include "argosy/train/options.h"
#include "argosy/train/precision.h"

namespace argosy::train::detail {

/// What somebody on this rank has asked for since the ranks last agreed.
struct Requests {
  bool stop_now = false;
  bool stop_after_epoch = false;
  bool checkpoint = false;
  std::string reason{};
};

/// A loss and what its mean divides by.
struct LossValue {
  at::Tensor mean{};
  double count = 0;
};

/// Mean of a loss over all samples of all ranks, exact (see metrics::ExactSum), by what each
/// batch's mean divides by.
class LossMean final {
 public:
  void update(double mean, double count);
  /// NaN when nothing was counted. Collective.
  [[nodiscard]] double compute(const comm::Group& group) const;

  [[nodiscard]] std::array<metrics::State, 2> state() const;
  void load_state(const std::array<metrics::State, 2>& state);
  void merge_state(const std::array<metrics::State, 2>& other);

 private:
  metrics::ExactSum sum_;
  metrics::ExactSum count_;
};

/// What a Model is made of, behind its handle.
class Core final {
 public:
  Core(Network network, comm::Group group);

  Network network;
  comm::Group group;
  std::optional<optim::Optimizer> optimizer{};
  std::optional<optim::ScheduleHandle> schedule{};
  std::optional<optim::ExponentialMovingAverage> average{};
  std::string monitor = "loss";  ///< what the schedule looks at, if it looks at a figure
  std::optional<loss::Loss> loss{};
  Precision precision{};
  std::vector<metrics::AnyMetric> metrics{};
  Requests requests{};
  int64_t steps = 0;  ///< updates since the beginning of training

  /// What the network gives, by the distributed wrapper or alone, as exactly as `precision` says.
  [[nodiscard]] Tensors forward(const Tensors& inputs) const;
  [[nodiscard]] Tensors forward_alone(const Tensors& inputs) const;

  /// The batch's tensors that forward takes, on the network's device. Errors: UsageError naming
  /// both numbers.
  [[nodiscard]] Tensors inputs_of(const Tensors& batch, const char* where) const;
  /// The same, fewer if the batch has fewer.
  [[nodiscard]] Tensors first_of(const Tensors& batch) const;
  /// The others, there too. Errors: UsageError when there are none.
  [[nodiscard]] Tensors labels_of(const Tensors& batch, const char* where) const;
  /// On the network's device.
  [[nodiscard]] Tensors here(Tensors tensors) const;
  [[nodiscard]] LossValue loss_of(const Tensors& outputs, const Tensors& labels) const;
  void update_metrics(const Tensors& outputs, const Tensors& labels);
  void reset_metrics();
  [[nodiscard]] std::vector<std::string> metric_names() const;
  /// Their values over all ranks. Collective.
  [[nodiscard]] Logs metric_values() const;
  /// The same with what else a training tells: the scale of the loss, where there is one.
  [[nodiscard]] Logs training_values() const;

  void check_prepared(const char* where) const;
  /// Errors: UsageError without a loss and an optimizer.
  void check_optimizer(const char* where) const;
  void check_has_optimizer(const char* where) const;
  /// The optimizer's step, unless the update is skipped, and new gradients.
  void step();
  /// After an update: counts it, moves what moves with it; a skipped one moves nothing.
  void stepped();
};

/// While it lives the network is judged: in evaluation mode, without gradients, with the average of
/// its weights where there is one.
class Judged final {
 public:
  explicit Judged(Core& core);

 private:
  metrics::EvaluationGuard guard_;
  std::optional<optim::Averaged> averaged_{};
};

/// Samples of a batch: the first dimension of its first tensor.
[[nodiscard]] int64_t samples_in(const Tensors& batch);

/// The ranks' sums of these numbers, in place. Collective; nothing in a group of one.
void sum_over_ranks(std::span<double> values, const comm::Group& group);

/// Data sets and loaders that are wrong for several ranks are found before the first batch.
/// Collective. Errors: UsageError: a sampler that gives several ranks the same batches; for
/// `training`, ranks with different numbers of batches.
void check_feed(const Feed& feed, const comm::Group& group, bool training);

/// One call of fit().
History fit(Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options);
/// One evaluation. Collective.
Logs evaluate(Core& core, Model& model, Feed& feed, const EvaluateOptions& options);
/// The same within fit(): nullopt when it was left, because some rank was asked to. on_eval_end()
/// has not come then, and the metrics count what they have seen.
std::optional<Logs> evaluate_unless(Core& core,
                                    Model& model,
                                    Feed& feed,
                                    const EvaluateOptions& options,
                                    const std::function<bool()>& asked_to_leave);
std::vector<at::Tensor> predict(Core& core,
                                Model& model,
                                Feed& feed,
                                const PredictOptions& options);

}  // namespace argosy::train::detail
