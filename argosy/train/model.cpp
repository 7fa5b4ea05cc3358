#include "argosy/train/model.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include <ATen/Functions.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/checkpoint/saver.h"
#include "argosy/optim/forwarding_optimizer.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/core.h"
#include "argosy/train/evaluate.h"
#include "argosy/train/fit.h"
#include "argosy/train/training_state.h"

namespace argosy::train {
namespace {

/// Of prepare()'s options, else of the strategy.
detail::Precision precision_of(std::optional<AmpOptions> amp,
                               const engine::NamedTensors& parameters) {
  if (const std::optional<at::ScalarType> dtype = fleet::detail::amp_dtype()) {
    ARGOSY_CHECK(!amp.has_value(),
                 "train.prepare",
                 "the strategy's amp is on already. Leave out amp here, or there.");
    amp.emplace(AmpOptions{.dtype = *dtype});
    if (*dtype == at::kHalf) {
      amp->scaler = fleet::detail::amp_scaler();
    }
  }
  if (const auto pure = fleet::detail::pure_precision()) {  // the wrapper casts
    ARGOSY_CHECK(!amp.has_value(),
                 "train.prepare",
                 "the strategy's amp is on already. Leave out amp here, or there.");
    return pure->param_dtype == at::kHalf ? detail::Precision(fleet::detail::amp_scaler())
                                          : detail::Precision();
  }
  return !amp.has_value()
             ? detail::Precision()
             : detail::Precision(
                   *amp, parameters.empty() ? at::kCPU : parameters.front().second.device().type());
}

void save_folder(const detail::Core& core, const std::filesystem::path& path) {
  const std::filesystem::path above = path.has_parent_path() ? path.parent_path() : ".";
  checkpoint::Saver saver(above.string(), {.async = false}, core.group);
  saver.save(detail::capture(core), path.filename().string());
}

/// Where ranks divide the parameters, each has all of them while this lives. Collective.
std::optional<fleet::detail::WholeModels> whole_where_divided() {
  return fleet::strategy().shards() ? std::optional<fleet::detail::WholeModels>(std::in_place)
                                    : std::nullopt;
}

}  // namespace

Model::Model(Network network)
    : core_(std::make_shared<detail::Core>(std::move(network), fleet::group())) {}

void Model::join_job() {
  if (!fleet::is_initialized()) {
    fleet::init();
  }
}

void Model::prepare(const optim::Optimizer& optimizer,
                    loss::Loss loss,
                    std::vector<metrics::AnyMetric> metrics,
                    PrepareOptions options) {
  prepare(optimizer, std::move(options));
  core_->loss = std::move(loss);
  core_->metrics = std::move(metrics);
}

void Model::prepare(const optim::Optimizer& optimizer, PrepareOptions options) {
  detail::Precision precision = precision_of(options.amp, parameters());
  ARGOSY_CHECK(!precision.scales() || !fleet::strategy().overlap_update || core_->group.size() == 1,
               "train.prepare",
               "amp with a scaler and the strategy's overlap_update exclude each other: updates "
               "would be made during backward, before it is known whether to skip them. Leave one "
               "of them out.");
  std::optional<optim::ExponentialMovingAverage> average;
  if (options.ema.has_value()) {
    average.emplace(network(), *options.ema);
  }
  ARGOSY_CHECK(!fleet::strategy().gradient_merge,
               "train.prepare",
               "the strategy's gradient_merge is for loops of your own. Leave it out, and give "
               "fit() accumulate_grad_batches.");
  const std::string way = fleet::strategy().saves_traffic_by();
  ARGOSY_CHECK(
      way.empty() || !precision.scales(),
      "train.prepare",
      "amp with a scaler of the loss and the strategy's {} exclude each other: what a rank "
      "keeps from step to step would be of another scale. Take bfloat16, or leave one of "
      "them out.",
      way);
  ARGOSY_CHECK(!fleet::strategy().trains_apart() || !average.has_value(),
               "train.prepare",
               "ema and the strategy's {} exclude each other: ranks would average weights of their "
               "own, and a checkpoint keeps rank 0's average. Leave one of them out.",
               way);
  const optim::Optimizer prepared =
      fleet::detail::is_prepared(optimizer) ? optimizer : fleet::detail::prepared(optimizer);
  ARGOSY_CHECK(
      !options.schedule.has_value() ||
          optim::innermost(*prepared.impl()) == optim::innermost(*optimizer.impl()),
      "train.prepare",
      "the strategy's lars or lamb takes the place of this optimizer, whose rate the schedule "
      "sets. Call fleet::distributed_optimizer() first, and build the schedule from what it "
      "returns.");
  ARGOSY_CHECK(options.monitor == PrepareOptions().monitor ||
                   (options.schedule.has_value() &&
                    options.schedule->unit() == optim::ScheduleUnit::kMetric),
               "train.prepare",
               "monitor = \"{}\" without a schedule that watches a figure. Give prepare() a "
               "ReduceLROnPlateau, or leave monitor out",
               options.monitor);
  // From here on nothing is refused.
  core_->optimizer = prepared;
  core_->schedule = std::move(options.schedule);
  core_->monitor = std::move(options.monitor);
  core_->average = std::move(average);
  core_->precision = std::move(precision);
  core_->loss.reset();
  core_->metrics.clear();
}

void Model::prepare(loss::Loss loss,
                    std::vector<metrics::AnyMetric> metrics,
                    const std::optional<AmpOptions>& amp) {
  core_->precision = precision_of(amp, parameters());
  core_->loss = std::move(loss);
  core_->metrics = std::move(metrics);
}

Model::LoaderChoice Model::train_loader(const FitOptions& options) {
  return {.batch_size = options.batch_size,
          .shuffle = options.data.shuffle,
          .drop_last = options.data.drop_last,
          .num_workers = options.num_workers,
          .seed = options.data.seed,
          .micro_batches = options.accumulate_grad_batches};
}

Model::LoaderChoice Model::eval_loader(const FitOptions& options) {
  return {.batch_size = options.data.eval_batch_size.value_or(options.batch_size),
          .num_workers = options.num_workers,
          .seed = options.data.seed,
          .evaluation = true};
}

data::BatchSampler Model::sampler_for(int64_t samples, const LoaderChoice& choice) {
  if (choice.evaluation) {
    return fleet::evaluation_sampler(samples, {.batch_size = choice.batch_size});
  }
  return fleet::distributed_batch_sampler(samples,
                                          {.batch_size = choice.batch_size,
                                           .shuffle = choice.shuffle,
                                           .drop_last = choice.drop_last,
                                           .seed = choice.seed,
                                           .micro_batches = choice.micro_batches});
}

data::DataLoaderOptions Model::options_for(const LoaderChoice& choice) const {
  return {.num_workers = choice.num_workers, .seed = choice.seed};
}

std::shared_ptr<detail::FitStart> Model::begin_fit(const FitOptions& options,
                                                   std::optional<int64_t> dealt_to) const {
  options.validate();
  return std::make_shared<detail::FitStart>(detail::start(options, dealt_to, core_->group));
}

History Model::run_fit(Feed& train,
                       Feed* eval,
                       const FitOptions& options,
                       detail::FitStart& start) {
  return detail::fit(*core_, *this, train, eval, options, start);
}

Logs Model::run_evaluate(Feed& feed, const EvaluateOptions& options) {
  return detail::evaluate(*core_, *this, feed, options);
}

std::vector<at::Tensor> Model::run_predict(Feed& feed, const PredictOptions& options) {
  return detail::predict(*core_, *this, feed, options);
}

Logs Model::train_batch(const Tensors& inputs,
                        const Tensors& labels,
                        const TrainBatchOptions& options) {
  core_->check_optimizer("train.train_batch");
  core_->network.module->train();
  detail::LossMean mean;
  core_->reset_metrics();
  const auto pass = [&] {
    const Tensors outputs = core_->forward(core_->here(inputs));
    const Tensors targets = core_->here(labels);
    const detail::LossValue loss = core_->loss_of(outputs, targets);
    core_->precision.backward(loss.mean);
    mean.update(loss);
    core_->optimizer->note_loss(loss.mean.item<double>());
    core_->update_metrics(outputs, targets);
  };
  core_->optimizer->use_shared_weights(false);
  if (options.update) {
    core_->precision.forget_update();
    pass();
    core_->precision.begin_update(*core_->optimizer);
    core_->step();
    core_->stepped();
  } else {
    core_->network.without_sync(pass);
  }
  Logs logs{{"loss", mean.compute(core_->group)}};
  logs.add(core_->training_values());
  return logs;
}

Logs Model::eval_batch(const Tensors& inputs, const Tensors& labels) {
  core_->check_prepared("train.eval_batch");
  detail::LossMean mean;
  core_->reset_metrics();
  {
    const detail::Judged judged(*core_);
    const Tensors outputs = core_->forward_alone(core_->here(inputs));
    const Tensors targets = core_->here(labels);
    const detail::LossValue loss = core_->loss_of(outputs, targets);
    mean.update(loss);
    core_->update_metrics(outputs, targets);
  }
  Logs logs{{"loss", mean.compute(core_->group)}};
  logs.add(core_->metric_values());
  return logs;
}

Tensors Model::predict_batch(const Tensors& inputs) {
  const detail::Judged judged(*core_);
  return core_->forward_alone(core_->here(inputs));
}

void Model::request_checkpoint() {
  core_->requests.checkpoint = true;
}

void Model::stop(std::string reason) {
  core_->requests.stop_now = true;
  core_->requests.reason = std::move(reason);
}

void Model::stop_training(std::string reason) {
  core_->requests.stop_after_epoch = true;
  core_->requests.reason = std::move(reason);
}

engine::NamedTensors Model::parameters() const {
  return engine::named_parameters(network());
}

const torch::nn::Module& Model::network() const {
  return *core_->network.module;
}

optim::Optimizer& Model::optimizer() const {
  core_->check_has_optimizer("train.optimizer");
  return *core_->optimizer;
}

const comm::Group& Model::group() const {
  return core_->group;
}

bool Model::is_first_worker() const {
  return core_->group.rank() == 0;
}

void Model::save(const std::string& path) const {
  const std::filesystem::path file(path);
  const std::string ending = file.extension().string();
  ARGOSY_CHECK(file.has_filename(), "train.save", "expected a file or a folder, got \"{}\"", path);
  if (ending.empty()) {
    core_->network.sync_buffers();
    save_folder(*core_, file);
    return;
  }
  ARGOSY_CHECK(checkpoint::is_weights_ending(ending),
               "train.save",
               "what to write goes by the ending: expected .pt or .pth (torch.load), .safetensors, "
               ".pdparams (paddle.load), or none (a checkpoint with the optimizer's state), got "
               "\"{}\"",
               path);
  core_->network.sync_buffers();
  const detail::TogetherWeights together(*core_);
  const detail::Judged judged(*core_);
  const auto whole = whole_where_divided();
  checkpoint::save_weights_together(network(), path, core_->group);
}

engine::LoadResult Model::load(const std::string& path, const LoadModelOptions& options) {
  const bool whole = checkpoint::is_checkpoint(path) && core_->optimizer.has_value() &&
                     !options.partial && !options.reset_optimizer && options.renames.empty();
  if (!whole) {
    const detail::TogetherWeights together(*core_);  // what the file lacks is alike on all ranks
    engine::LoadResult result = checkpoint::load_weights(
        network(), path, {.renames = options.renames}, {.partial = options.partial});
    if (core_->optimizer.has_value()) {
      core_->optimizer->weights_replaced();
    }
    return result;
  }
  detail::restore(*core_, detail::read_together(path, core_->group).snapshot, path);
  engine::LoadResult result;
  for (const auto& [name, tensor] : engine::state_dict(network())) {
    result.loaded.push_back(name);
  }
  return result;
}

engine::Summary Model::summary(const std::vector<int64_t>& input_shape,
                               at::ScalarType dtype) const {
  const std::vector<at::Tensor> parameters = network().parameters();
  const at::Tensor zeros = at::zeros(
      input_shape,
      parameters.empty() ? at::TensorOptions(dtype) : parameters.front().options().dtype(dtype));
  return engine::summary(network(), {zeros}, [&] { (void)core_->network.forward_alone({zeros}); });
}

}  // namespace argosy::train
