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
#include "argosy/metrics/sum_over_ranks.h"
#include "argosy/optim/ema.h"
#include "argosy/optim/optimizer.h"
#include "argosy/optim/schedule_unit.h"
#include "argosy/train/network.h"
#include "argosy/train/options.h"
#include "argosy/train/precision.h"

namespace argosy::train::detail {

/// What this rank was asked for since the ranks last agreed.
struct Requests {
  bool stop_now = false;
  bool stop_after_epoch = false;
  bool checkpoint = false;
  std::string reason{};
};

/// A mean loss and the number that the mean was divided by: 0-dim, perhaps of a device.
struct LossValue {
  at::Tensor mean{};
  at::Tensor count{};
};

/// The exact mean of a loss over all samples of all ranks (see metrics::SumOverRanks). Each batch's
/// mean is weighted by its count.
class LossMean final {
 public:
  void update(double mean, double count);
  /// Waits for the loss's device.
  void update(const LossValue& loss);
  /// Returns NaN if nothing was counted. Collective.
  [[nodiscard]] double compute(const comm::Group& group) const;

  [[nodiscard]] std::array<metrics::State, 2> state() const;
  void load_state(const std::array<metrics::State, 2>& state);
  void merge_state(const std::array<metrics::State, 2>& other);

 private:
  metrics::SumOverRanks sum_;
  metrics::SumOverRanks count_;
};

/// The parts of a Model, behind its handle.
class Core final {
 public:
  Core(Network network, comm::Group group);

  Network network;
  comm::Group group;
  std::optional<optim::Optimizer> optimizer{};
  std::optional<optim::ScheduleHandle> schedule{};
  std::optional<optim::ExponentialMovingAverage> average{};
  std::string monitor = "loss";  ///< the figure that a ReduceLROnPlateau watches
  std::optional<loss::Loss> loss{};
  Precision precision{};
  std::vector<metrics::AnyMetric> metrics{};
  Requests requests{};
  int64_t steps = 0;  ///< updates since the start of training

  /// True if the schedule moves by a figure.
  [[nodiscard]] bool watches_a_figure() const {
    return schedule.has_value() && schedule->unit() == optim::ScheduleUnit::kMetric;
  }
  /// Returns the network's outputs, computed in `precision`. forward() goes through the distributed
  /// wrapper, forward_alone() does not.
  [[nodiscard]] Tensors forward(const Tensors& inputs) const;
  [[nodiscard]] Tensors forward_alone(const Tensors& inputs) const;

  /// Returns the network's device.
  [[nodiscard]] at::Device device() const;
  /// Returns the tensors of the batch that forward takes, on the network's device. Errors:
  /// UsageError naming both numbers if the batch has too few.
  [[nodiscard]] Tensors inputs_of(const Tensors& batch, const char* where) const;
  /// The same, but returns fewer tensors if the batch has fewer.
  [[nodiscard]] Tensors first_of(const Tensors& batch) const;
  /// Returns the other tensors of the batch, on the network's device. Errors: UsageError if there
  /// are none.
  [[nodiscard]] Tensors labels_of(const Tensors& batch, const char* where) const;
  /// Returns the tensors on the network's device.
  [[nodiscard]] Tensors here(Tensors tensors) const;
  [[nodiscard]] LossValue loss_of(const Tensors& outputs, const Tensors& labels) const;
  void update_metrics(const Tensors& outputs, const Tensors& labels);
  void reset_metrics();
  [[nodiscard]] std::vector<std::string> metric_names() const;
  /// Returns the metrics' values over all ranks. Collective.
  [[nodiscard]] Logs metric_values() const;
  /// The same, and the scale of the loss if there is a scaler.
  [[nodiscard]] Logs training_values() const;

  void check_prepared(const char* where) const;
  /// Errors: UsageError without a loss and an optimizer.
  void check_optimizer(const char* where) const;
  void check_has_optimizer(const char* where) const;
  /// Makes the optimizer's step unless the update is skipped, then clears the gradients.
  void step();
  /// Call it after an update: counts the update and advances what follows it. A skipped update
  /// advances nothing.
  void stepped();
};

/// While it lives, the network is in evaluation mode, without gradients, and uses the average of
/// its weights if there is one.
class Judged final {
 public:
  explicit Judged(Core& core);

 private:
  metrics::EvaluationGuard guard_;
  std::optional<optim::Averaged> averaged_{};
};

/// While it lives, the network has the weights that the ranks have together, where each trains its
/// own (localsgd, diloco). Collective.
class TogetherWeights final {
 public:
  explicit TogetherWeights(const Core& core) : TogetherWeights(core.optimizer) {}
  explicit TogetherWeights(std::optional<optim::Optimizer> optimizer);
  ~TogetherWeights();
  TogetherWeights(const TogetherWeights&) = delete;
  TogetherWeights& operator=(const TogetherWeights&) = delete;
  TogetherWeights(TogetherWeights&&) = delete;
  TogetherWeights& operator=(TogetherWeights&&) = delete;

 private:
  std::optional<optim::Optimizer> optimizer_;
  bool before_;
};

/// Returns the number of samples in a batch: the first dimension of its first tensor.
[[nodiscard]] int64_t samples_in(const Tensors& batch);

/// Sums the values over the ranks, in place. Collective; does nothing in a group of one.
void sum_over_ranks(std::span<double> values, const comm::Group& group);

/// Sums figures of the virtual ranks, for each of this rank's in their order, along the tree.
/// Collective; all ranks have equally many figures.
[[nodiscard]] std::vector<double> sum_over_virtual_ranks(
    std::span<const std::vector<double>> of_each);

/// The use of a feed.
enum class FeedOf { kTraining, kEvaluation };

/// Checks before the first batch that the feed suits several ranks. Collective.
/// Errors: UsageError if a sampler gives several ranks the same batches or, for a training, if
/// ranks have different numbers of batches.
void check_feed(const Feed& feed, const comm::Group& group, FeedOf use);

}  // namespace argosy::train::detail
