#include "argosy/train/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/json.h"
#include "argosy/engine/device.h"
#include "argosy/engine/host_fetch.h"
#include "argosy/fleet/fleet.h"

namespace argosy::train::detail {

Core::Core(Network given_network, comm::Group given_group)
    : network(std::move(given_network)), group(std::move(given_group)) {}

void Core::check_prepared(const char* where) const {
  ARGOSY_CHECK(loss.has_value(), where, "the model has no loss: call prepare() first");
}

void Core::check_optimizer(const char* where) const {
  check_prepared(where);
  check_has_optimizer(where);
}

void Core::check_has_optimizer(const char* where) const {
  ARGOSY_CHECK(optimizer.has_value(),
               where,
               "the model has no optimizer: call prepare(optimizer, loss, metrics) first");
}

void Core::step() {
  precision.update(*optimizer);
  optimizer->zero_grad();
}

void Core::stepped() {
  ++steps;
  precision.report(steps, group.rank() == 0);
  if (precision.skipped()) {
    return;
  }
  if (average.has_value()) {
    average->update();
  }
  if (schedule.has_value()) {
    schedule->on_step();
  }
}

Judged::Judged(Core& core) : guard_(*core.network.module) {
  if (core.average.has_value() && core.average->num_updates() > 0) {
    averaged_.emplace(*core.average);
  }
}

TogetherWeights::TogetherWeights(std::optional<optim::Optimizer> optimizer)
    : optimizer_(std::move(optimizer)),
      before_(optimizer_.has_value() && optimizer_->use_shared_weights(true)) {}

TogetherWeights::~TogetherWeights() {
  if (optimizer_.has_value() && !before_) {
    optimizer_->use_shared_weights(false);
  }
}

Tensors Core::forward(const Tensors& inputs) const {
  return precision.run(network.forward, inputs);
}

Tensors Core::forward_alone(const Tensors& inputs) const {
  return precision.run(network.forward_alone, inputs);
}

Tensors Core::inputs_of(const Tensors& batch, const char* where) const {
  ARGOSY_CHECK(batch.size() >= network.inputs,
               where,
               "a batch has {} tensor{}, the network's forward takes {}",
               batch.size(),
               batch.size() == 1 ? "" : "s",
               network.inputs);
  return first_of(batch);
}

Tensors Core::first_of(const Tensors& batch) const {
  const auto many = static_cast<std::ptrdiff_t>(std::min(batch.size(), network.inputs));
  return here({batch.begin(), batch.begin() + many});
}

Tensors Core::labels_of(const Tensors& batch, const char* where) const {
  ARGOSY_CHECK(batch.size() > network.first_label,
               where,
               "a batch has {} tensor{}, all of which the network's forward takes: there are no "
               "labels for the loss. Let the data set's samples have one more field.",
               batch.size(),
               batch.size() == 1 ? "" : "s");
  return here({batch.begin() + static_cast<std::ptrdiff_t>(network.first_label), batch.end()});
}

at::Device Core::device() const {
  return engine::device_of(*network.module);
}

Tensors Core::here(Tensors tensors) const {
  const at::Device there = device();
  for (at::Tensor& tensor : tensors) {
    tensor = tensor.defined() ? tensor.to(there) : tensor;
  }
  return tensors;
}

LossValue Core::loss_of(const Tensors& outputs, const Tensors& labels) const {
  return {.mean = (*loss)(outputs.front(), labels.front()),
          .count = loss->counted(outputs.front(), labels.front())};
}

void Core::update_metrics(const Tensors& outputs, const Tensors& labels) {
  if (metrics.empty()) {
    return;
  }
  const c10::NoGradGuard no_grad;
  const at::Tensor output = outputs.front().detach().cpu();
  const at::Tensor label = labels.front().cpu();
  for (metrics::AnyMetric& metric : metrics) {
    metric.update(output, label);
  }
}

void Core::reset_metrics() {
  for (metrics::AnyMetric& metric : metrics) {
    metric.reset();
  }
}

std::vector<std::string> Core::metric_names() const {
  std::vector<std::string> all;
  for (const metrics::AnyMetric& metric : metrics) {
    const std::vector<std::string> names = metric.names();
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

Logs Core::metric_values() const {
  Logs logs;
  for (const metrics::AnyMetric& metric : metrics) {
    const std::vector<double> values = metric.values(group);
    const std::vector<std::string> names = metric.names();
    for (std::size_t i = 0; i < values.size(); ++i) {
      logs.set(names[i], values[i]);
    }
  }
  return logs;
}

Logs Core::training_values() const {
  Logs logs = metric_values();
  precision.add_to(logs);
  return logs;
}

void LossMean::update(double mean, double count) {
  if (count > 0) {  // the mean of nothing is NaN and counts as nothing
    sum_.add(mean * count);
    count_.add(count);
  }
}

void LossMean::update(const LossValue& loss) {
  engine::HostFetch both({loss.mean, loss.count});
  update(both.get()[0].item<double>(), both.get()[1].item<double>());
}

double LossMean::compute(const comm::Group& group) const {
  return sum_.all_reduced(group).value() / count_.all_reduced(group).value();
}

std::array<metrics::State, 2> LossMean::state() const {
  return {sum_.state(), count_.state()};
}

void LossMean::load_state(const std::array<metrics::State, 2>& state) {
  sum_.load_state(state[0]);
  count_.load_state(state[1]);
}

void LossMean::merge_state(const std::array<metrics::State, 2>& other) {
  sum_.merge_state(other[0]);
  count_.merge_state(other[1]);
}

int64_t samples_in(const Tensors& batch) {
  return batch.empty() || batch.front().dim() == 0 ? 1 : batch.front().size(0);
}

void sum_over_ranks(std::span<double> values, const comm::Group& group) {
  if (group.size() > 1) {
    const at::Tensor all =
        at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble);
    comm::all_reduce(all, group);
  }
}

std::vector<double> sum_over_virtual_ranks(std::span<const std::vector<double>> of_each) {
  if (of_each.size() == 1 && fleet::worker_num() == 1) {
    return of_each.front();
  }
  std::vector<at::Tensor> leaves;
  for (const std::vector<double>& figures : of_each) {
    leaves.push_back(at::tensor(figures, at::kDouble));
  }
  const at::Tensor sums = fleet::all_reduce(leaves);
  const auto* begin = sums.data_ptr<double>();
  return {begin, begin + sums.numel()};
}

void check_feed(const Feed& feed, const comm::Group& group, FeedOf use) {
  const bool training = use == FeedOf::kTraining;
  if (group.size() == 1) {
    return;
  }
  const data::LoaderState own = feed.state();
  const data::BatchTurns turns = feed.turns();
  const auto all = comm::all_gather_object(
      nlohmann::json{own.order, own.batches, own.samples, turns.first, turns.spare}, group);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto order = all[rank][0].get<uint64_t>();
    const auto batches = all[rank][1].get<int64_t>();
    const auto samples = all[rank][2].get<int64_t>();
    const auto same = std::find_if(all.begin(),
                                   all.begin() + static_cast<std::ptrdiff_t>(rank),
                                   [&](const nlohmann::json& other) {
                                     return other[0] == order && other[3] == all[rank][3] &&
                                            other[4] == all[rank][4];
                                   });
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(rank);
    ARGOSY_CHECK(
        same == end || batches == 0 || all[rank][4].get<bool>() ||
            (samples >= 0 && samples < group.size()),
        training ? "train.fit" : "train.evaluate",
        "ranks {} and {} have the same batches: the loader's sampler ignores the ranks, "
        "each sample would count {} times. Give it fleet::{}(…), or the data set itself in "
        "place of a loader.",
        same - all.begin(),
        rank,
        group.size(),
        training ? "distributed_batch_sampler" : "evaluation_sampler");
    ARGOSY_CHECK(!training || batches == all[0][1].get<int64_t>(),
                 "train.fit",
                 "rank {} has {} batches an epoch, rank 0 has {}: the ranks would wait for each "
                 "other for ever. Take fleet::distributed_batch_sampler(…), or drop the rest.",
                 rank,
                 batches,
                 all[0][1].get<int64_t>());
  }
}

}  // namespace argosy::train::detail
