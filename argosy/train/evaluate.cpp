#include "argosy/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/json.h"
#include "argosy/engine/host_fetch.h"
#include "argosy/fleet/fleet.h"
#include "argosy/metrics/each_once.h"
#include "argosy/train/callbacks/prog_bar_logger.h"
#include "argosy/train/leaving.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {
namespace {

std::vector<AnyCallback> with_progress(const std::vector<AnyCallback>& callbacks, int verbose) {
  std::vector<AnyCallback> all;
  if (verbose > 0) {
    all.emplace_back(ProgBarLogger());
  }
  all.insert(all.end(), callbacks.begin(), callbacks.end());
  return all;
}

/// Calls `each` with the batches of one pass, at most `most` of them; a pass that is cut short is
/// left, so that the next one begins anew. False: it was, because somebody asked for it.
bool for_each_batch(Feed& feed,
                    std::optional<int64_t> most,
                    Leaving leaving,
                    const std::function<void(int64_t, const Tensors&)>& each) {
  feed.set_epoch(0);
  Tensors batch;
  int64_t number = 0;
  bool left = false;
  const bool spare = feed.turns().spare;  // a stream's batches are another rank's
  while (!left && !(most.has_value() && number >= *most) && feed.next(batch)) {
    if (!spare) {
      each(number, batch);
    }
    left = leaving.after(number++);
  }
  feed.leave();
  return !leaving.at_end();
}

EvalStep eval_step(Model& model, const Feed& feed, int64_t number, const Tensors& inputs) {
  return {.model = model,
          .batch = number,
          .batches = feed.batches(),
          .samples = samples_in(inputs),
          .waited = feed.stats().waited.count(),
          .inputs = inputs};
}

/// Rows of all ranks, in rank order. Collective; ranks may have none. `like`: what a rank without
/// rows learns shape and type from.
at::Tensor gather_rows(const at::Tensor& own, const comm::Group& group) {
  if (group.size() == 1) {
    return own;
  }
  const auto shapes = comm::all_gather_object(
      nlohmann::json{own.defined() ? own.sizes().vec() : std::vector<int64_t>{},
                     own.defined() ? static_cast<int>(own.scalar_type()) : -1},
      group);
  std::vector<int64_t> row;
  auto type = at::ScalarType::Undefined;
  for (const auto& shape : shapes) {
    if (shape[1].get<int>() >= 0) {
      row = shape[0].get<std::vector<int64_t>>();
      type = static_cast<at::ScalarType>(shape[1].get<int>());
    }
  }
  if (type == at::ScalarType::Undefined) {
    return {};
  }
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto& shape = shapes[static_cast<std::size_t>(rank)];
    std::vector<int64_t> size = row;
    size[0] = shape[1].get<int>() >= 0 ? shape[0][0].get<int64_t>() : 0;
    at::Tensor part = rank == group.rank() && own.defined()
                          ? own.contiguous()
                          : at::empty(size, at::TensorOptions().dtype(type));
    if (part.numel() > 0) {
      comm::broadcast(part, group, {.root = rank});
    }
    parts.push_back(std::move(part));
  }
  return at::cat(parts);
}

/// Sums up loss and metrics. Where batches are judged on a device, one batch later: then the host
/// has what the device says of it without a wait.
class FiguresOfBatches final {
 public:
  explicit FiguresOfBatches(Core& core) : core_(core) {}

  void add(const LossValue& loss, const Tensors& outputs, const Tensors& labels) {
    Tensors tensors{loss.mean, loss.count};
    if (!core_.metrics.empty()) {
      tensors.insert(tensors.end(), {outputs.front(), labels.front()});
    }
    settle();
    waiting_ = engine::HostFetch(std::move(tensors));
    if (loss.mean.is_cpu()) {
      settle();
    }
  }
  void settle() {
    if (!waiting_.has_value()) {
      return;
    }
    engine::HostFetch batch = *std::exchange(waiting_, std::nullopt);
    const Tensors& here = batch.get();
    loss_.update(here[0].item<double>(), here[1].item<double>());
    if (here.size() > 2) {
      core_.update_metrics({here[2]}, {here[3]});
    }
  }
  [[nodiscard]] const LossMean& loss() const { return loss_; }

 private:
  Core& core_;
  LossMean loss_;
  std::optional<engine::HostFetch> waiting_;
};

/// A loader has its own options.
void check_loader(const Feed& feed, const auto& options, const char* where) {
  ARGOSY_CHECK(feed.dealing().has_value() || (options.batch_size == 1 && options.num_workers == 0),
               where,
               "{} is set, and the batches come from a loader: give it to the loader",
               options.batch_size != 1 ? "batch_size" : "num_workers");
}

/// Ranks that divide the parameters gather them together, and those with fewer batches stop
/// earlier. Then each has all parameters meanwhile. Collective.
std::optional<fleet::detail::WholeModels> whole_where_needed(const Core& core, const Feed& feed) {
  if (!fleet::is_initialized() || !fleet::strategy().shards()) {
    return std::nullopt;
  }
  const std::vector<std::string> batches =
      comm::all_gather_object(std::to_string(feed.batches().value_or(-1)), core.group);
  const bool alike = std::ranges::all_of(batches, [&](const std::string& each) {
    return each == batches[0] && feed.batches().has_value();
  });
  return alike ? std::nullopt : std::optional<fleet::detail::WholeModels>(std::in_place);
}

}  // namespace

std::optional<Logs> evaluate_unless(Core& core,
                                    Model& model,
                                    Feed& feed,
                                    const EvaluateOptions& options,
                                    const std::function<bool()>& asked_to_leave) {
  core.check_prepared("train.evaluate");
  check_feed(feed, core.group, FeedOf::kEvaluation);
  const std::vector<AnyCallback> callbacks = with_progress(options.callbacks, options.verbose);
  Logs logs;
  const auto about = [&] {
    return Evaluation{.model = model,
                      .batches = feed.batches(),
                      .samples = feed.samples(),
                      .verbose = options.verbose,
                      .log_freq = options.log_freq,
                      .logs = logs};
  };
  for (const AnyCallback& callback : callbacks) {
    callback->on_eval_begin(about());
  }
  core.network.sync_buffers();
  core.reset_metrics();
  FiguresOfBatches figures(core);
  bool complete = false;
  int64_t seen = 0;
  {
    const TogetherWeights together(core);
    const Judged judged(core);
    const std::optional<fleet::detail::WholeModels> whole = whole_where_needed(core, feed);
    feed.set_device(core.device());
    Leaving leaving(asked_to_leave, feed.batches(), core.group);
    const auto each = [&](int64_t number, const Tensors& batch) {
      const Tensors inputs = core.inputs_of(batch, "train.evaluate");
      EvalStep step = eval_step(model, feed, number, inputs);
      for (const AnyCallback& callback : callbacks) {
        callback->on_eval_batch_begin(step);
      }
      const Tensors outputs = core.forward_alone(inputs);
      const Tensors labels = core.labels_of(batch, "train.evaluate");
      const LossValue loss = core.loss_of(outputs, labels);
      seen += samples_in(inputs);
      figures.add(loss, outputs, labels);
      step.outputs = outputs;
      step.labels = labels;
      for (const AnyCallback& callback : callbacks) {
        callback->on_eval_batch_end(step);
      }
    };
    complete = for_each_batch(feed, options.num_iters, std::move(leaving), each);
    figures.settle();
  }
  if (!complete) {
    return std::nullopt;
  }
  metrics::wait_for_shares(seen, core.group);
  if (!options.num_iters.has_value()) {
    metrics::check_each_once("train.evaluate", seen, feed.samples(), core.group);
  }
  logs.set("loss", figures.loss().compute(core.group));
  logs.add(core.metric_values());
  Evaluation end = about();
  end.metrics = &core.metrics;
  for (const AnyCallback& callback : callbacks) {
    callback->on_eval_end(end);
  }
  core.reset_metrics();
  return logs;
}

Logs evaluate(Core& core, Model& model, Feed& feed, const EvaluateOptions& options) {
  check_loader(feed, options, "train.evaluate");
  return *evaluate_unless(core, model, feed, options, {});
}

std::vector<at::Tensor> predict(Core& core,
                                Model& model,
                                Feed& feed,
                                const PredictOptions& options) {
  check_loader(feed, options, "train.predict");
  check_feed(feed, core.group, FeedOf::kEvaluation);
  const std::vector<AnyCallback> callbacks = with_progress(options.callbacks, options.verbose);
  const Logs none;
  const Evaluation about{.model = model,
                         .batches = feed.batches(),
                         .samples = feed.samples(),
                         .verbose = options.verbose,
                         .logs = none};
  for (const AnyCallback& callback : callbacks) {
    callback->on_predict_begin(about);
  }
  core.network.sync_buffers();
  std::vector<Tensors> outputs;  // of each output, the batches
  {
    const TogetherWeights together(core);
    const Judged judged(core);
    const std::optional<fleet::detail::WholeModels> whole = whole_where_needed(core, feed);
    feed.set_device(core.device());
    for_each_batch(feed, std::nullopt, {}, [&](int64_t number, const Tensors& batch) {
      const Tensors inputs = core.inputs_of(batch, "train.predict");
      EvalStep step = eval_step(model, feed, number, inputs);
      for (const AnyCallback& callback : callbacks) {
        callback->on_predict_batch_begin(step);
      }
      const Tensors made = core.forward_alone(inputs);
      step.outputs = made;
      outputs.resize(std::max(outputs.size(), made.size()));
      for (std::size_t i = 0; i < made.size(); ++i) {
        outputs[i].push_back(made[i].cpu());  // all of them need not fit on a device
      }
      for (const AnyCallback& callback : callbacks) {
        callback->on_predict_batch_end(step);
      }
    });
  }
  metrics::wait_for_shares(static_cast<int64_t>(outputs.size()), core.group);
  double most = static_cast<double>(outputs.size());
  if (core.group.size() > 1) {
    const at::Tensor number = at::full({}, most, at::kDouble);
    comm::all_reduce(number, core.group, {.op = comm::ReduceOp::kMax});
    most = number.item<double>();
  }
  outputs.resize(static_cast<std::size_t>(most));
  std::vector<at::Tensor> all;
  for (const Tensors& batches : outputs) {
    const at::Tensor own = batches.empty() ? at::Tensor() : at::cat(batches);
    all.push_back(gather_rows(own, core.group));
  }
  for (const AnyCallback& callback : callbacks) {
    callback->on_predict_end(about);
  }
  return all;
}

}  // namespace argosy::train::detail
