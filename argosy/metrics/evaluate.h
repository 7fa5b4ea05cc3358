#pragma once

#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/named.h"
#include "argosy/metrics/each_once.h"
#include "argosy/metrics/evaluation_guard.h"

namespace argosy::metrics {

/// What evaluate() and the trainer need of a metric.
template <typename T>
concept Metric = requires(T metric, const at::Tensor& tensor, const comm::Group& group) {
  metric.update(tensor, tensor);  // the model's output, the labels
  metric.compute(group);          // collective; the same on every rank
  metric.reset();
};

namespace detail {

/// The forward pass without communication: ranks may hold different numbers of batches.
template <typename Model>
at::Tensor predict(Model& model, const at::Tensor& input) {
  if constexpr (requires { at::Tensor(model.forward_alone(input)); }) {
    return model.forward_alone(input);
  } else if constexpr (requires { model.module(); }) {
    // Wrappers hand out their model as const; running it forward does not change its value.
    auto&& inner = model.module();
    return predict(const_cast<std::remove_cvref_t<decltype(inner)>&>(inner), input);
  } else if constexpr (requires { at::Tensor(model.forward(input)); }) {
    return model.forward(input);
  } else if constexpr (requires { at::Tensor(model->forward(input)); }) {
    return model->forward(input);
  } else {
    return model(input);
  }
}

/// Copies rank 0's buffers to all ranks if the model is a wrapper, and does nothing for other
/// models. Ranks that share an evaluation must run the same model, but running statistics diverge
/// in training. Collective over the wrapper's group.
template <typename Model>
void sync_buffers(Model& model) {
  if constexpr (requires { model.sync_buffers(); }) {
    model.sync_buffers();
  }
}

/// For who leaves a loop out that others make: the next one is of the same epoch as theirs.
template <typename Loader>
void skip_epoch(Loader& loader) {
  if constexpr (requires { loader.set_epoch(loader.epoch() + 1); }) {
    loader.set_epoch(loader.epoch() + 1);
  }
}

template <typename Model>
comm::Group group_of(const Model& model, const comm::Group& given) {
  if constexpr (requires { comm::Group(model.group()); }) {
    return given.valid() ? given : model.group();
  } else {
    return given;
  }
}

}  // namespace detail

/// Runs `model` over every batch of `loader` and returns the metric's value over all ranks.
///
///     double accuracy = metrics::evaluate(model, test_loader, metrics::Accuracy());
///
///     metrics::Accuracy both({.topk = {1, 5}});    // more than compute() gives: keep the metric
///     metrics::evaluate(model, test_loader, both);
///     std::vector<double> values = both.values(group);
///
/// `model`: a module, a holder, a pointer, or a wrapper with module() (DistributedDataParallel).
/// `loader`: any range whose items are two tensors, input and labels. Ranks may have different
/// numbers of batches, or none. The metric is not reset first.
/// Runs without gradients in evaluation mode. Afterwards, also after an exception, each submodule
/// is in its former mode again.
///
/// Errors: UsageError for a DataLoader whose sampler repeats samples, see check_each_once().
///
/// The batches of a spare (data::BatchTurns) are another rank's and do not count. It waits for the
/// others without a deadline of its own.
///
/// Collective over `group`, at the end. An empty group means the model's own, group(), or
/// this process alone if the model has none. A wrapper with sync_buffers() first copies rank 0's
/// buffers to all ranks, so N ranks give exactly the result of rank 0 alone.
template <typename Model, typename Loader, typename M>
requires Metric<std::remove_cvref_t<M>>
auto evaluate(Model&& model, Loader&& loader, M&& metric, const comm::Group& group = {}) {
  detail::sync_buffers(model);
  int64_t seen = 0;
  bool spare = false;
  if constexpr (requires { bool(loader.turns().spare); }) {
    spare = loader.turns().spare;
  }
  if (spare) {
    detail::skip_epoch(loader);
  } else {
    const EvaluationGuard guard(engine::module_of(model));
    for (auto&& [input, labels] : loader) {
      metric.update(detail::predict(model, input), labels);
      seen += input.size(0);
    }
  }
  const comm::Group all = detail::group_of(model, group);
  wait_for_shares(seen, all);
  if constexpr (requires { int64_t(loader.state().samples); }) {
    check_each_once("metrics.evaluate", seen, loader.state().samples, all);
  }
  return metric.compute(all);
}

}  // namespace argosy::metrics
