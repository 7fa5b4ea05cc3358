#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/load_result.h"
#include "argosy/engine/state_dict.h"
#include "argosy/engine/summary.h"
#include "argosy/fleet/fleet.h"
#include "argosy/loss/loss.h"
#include "argosy/metrics/any_metric.h"
#include "argosy/optim/ema.h"
#include "argosy/optim/optimizer.h"
#include "argosy/optim/schedule_unit.h"
#include "argosy/train/amp.h"
#include "argosy/train/network.h"
#include "argosy/train/options.h"

namespace argosy::train {

namespace detail {
class Core;
}

struct PrepareOptions {
  /// optim::per_epoch(optim::StepLR(optimizer, …)), per_step(…) or optim::ReduceLROnPlateau.
  std::optional<optim::ScheduleHandle> schedule{};
  /// The figure that a ReduceLROnPlateau looks at: of the evaluation, else of the training.
  std::string monitor = "loss";
  /// An average of the weights over the training: it follows each update, and what evaluate(),
  /// predict() and save() see are its weights.
  std::optional<optim::ExponentialMovingAverageOptions> ema{};
  /// Mixed precision, in training as in evaluate() and predict(). Unset: full precision.
  std::optional<AmpOptions> amp{};
};

struct LoadModelOptions {
  /// What fits by name, shape and type is loaded, the rest left alone and reported.
  bool partial = false;
  /// Names of the file's entries to those of the model, see checkpoint::ReadWeightsOptions.
  std::vector<checkpoint::Rename> renames{};
  /// Of a checkpoint: weights only; optimizer, schedule and number of updates stay.
  bool reset_optimizer = false;
};

/// A network with all that it takes to train it: paddle.Model for C++.
///
///     vision::ResNet net = vision::resnet18({.num_classes = 102});
///     train::Model model(net);
///     model.prepare(optim::Momentum(net, {.lr = 0.1}), loss::CrossEntropy(),
///     {metrics::Accuracy()}); model.fit(train, valid, {.batch_size = 16, .epochs = 10,
///     .num_workers = 2}); train::Logs result = model.evaluate(valid, {.batch_size = 64});   //
///     loss, acc model.save("flowers");                                            // torch.load
///     reads it
///
/// Under `argosy launch` the same program trains on all ranks: the network is wrapped
/// (DistributedDataParallel), data sets are divided, what is printed and returned are figures of
/// all ranks. A value handle: copies are the same model. Calls are collective, all ranks make them
/// in the same order; one thread per process.
/// Network: a module holder, or a shared_ptr to a module, with forward of one to four tensors that
/// returns tensors; or a DistributedDataParallel around one. Batches: tensors, a tuple or a struct
/// of tensors; as many first ones as forward takes are its inputs, the others are labels.
class Model final {
 public:
  /// Joins the job (fleet::init()) unless the program has. Collective.
  template <typename M>
  requires(!std::is_same_v<std::remove_cvref_t<M>, Model>) explicit Model(M network)
      : Model(make_network(std::move(network))) {}

  /// What to train with. Again: replaces all of it. Collective.
  /// `optimizer`: of the network's parameters; also what fleet::distributed_optimizer() returned.
  /// `options`: a schedule of that optimizer's learning rate, which fit() moves on at its unit.
  /// Errors: UsageError: an amp.dtype that the device cannot compute in; amp with a scaler beside
  /// DistributedStrategy::overlap_update, which makes updates before anybody can skip them.
  void prepare(const optim::Optimizer& optimizer,
               loss::Loss loss,
               std::vector<metrics::AnyMetric> metrics = {},
               PrepareOptions options = {});
  /// For evaluate() and predict().
  void prepare(loss::Loss loss,
               std::vector<metrics::AnyMetric> metrics = {},
               const std::optional<AmpOptions>& amp = {});

  /// Trains. `train`, `eval`: data sets, or loaders whose samplers know the ranks
  /// (fleet::distributed_batch_sampler, fleet::evaluation_sampler).
  /// Errors: UsageError for a loader whose sampler gives all ranks the same, and for options that
  /// belong to a loader beside one; what data sets, network, callbacks throw.
  template <typename Train>
  History fit(Train&& train, const FitOptions& options = {}) {
    const auto feed = make_feed(std::forward<Train>(train), train_loader(options));
    return run_fit(*feed, nullptr, options);
  }
  template <typename Train, typename Eval>
  requires(!std::is_convertible_v<Eval, FitOptions>) History
      fit(Train&& train, Eval&& eval, const FitOptions& options = {}) {
    const auto feed = make_feed(std::forward<Train>(train), train_loader(options));
    const auto eval_feed = make_feed(std::forward<Eval>(eval), eval_loader(options));
    return run_fit(*feed, eval_feed.get(), options);
  }

  /// Loss and metrics over the whole set, each sample once whatever the number of ranks; the same
  /// on every rank.
  template <typename Data>
  Logs evaluate(Data&& data, const EvaluateOptions& options = {}) {
    const auto feed = make_feed(
        std::forward<Data>(data),
        {.batch_size = options.batch_size, .num_workers = options.num_workers, .evaluation = true});
    return run_evaluate(*feed, options);
  }

  /// Outputs for the whole set in its order, on every rank: one tensor for each that forward gives,
  /// on the CPU.
  template <typename Data>
  std::vector<at::Tensor> predict(Data&& data, const PredictOptions& options = {}) {
    const auto feed = make_feed(
        std::forward<Data>(data),
        {.batch_size = options.batch_size, .num_workers = options.num_workers, .evaluation = true});
    return run_predict(*feed, options);
  }

  /// One batch of this rank: forward, backward and, with `update`, a step of the optimizer. Returns
  /// the loss and the metrics of all ranks' batches. For loops of one's own. Tensors may lie on any
  /// device, here and in the next two.
  Logs train_batch(const Tensors& inputs, const Tensors& labels, bool update = true);
  /// Loss and metrics of all ranks' batches.
  Logs eval_batch(const Tensors& inputs, const Tensors& labels);
  /// This rank's outputs, on the network's device.
  Tensors predict_batch(const Tensors& inputs);

  /// What `path` becomes goes by its ending. `.pt`, `.pth`: weights that Python's torch.load reads;
  /// `.safetensors`: likewise; both of the average where there is one. None: a checkpoint's folder,
  /// which has the optimizer's state and the schedule too. Rank 0 writes; returns when it is on the
  /// disk. Collective. Errors: UsageError for another ending; CheckpointError, on all ranks.
  void save(const std::string& path) const;
  /// Weights from anything that checkpoint::read_weights() reads (.pt, .pth, .safetensors,
  /// .pdparams). Of a checkpoint's folder also the state of the optimizer and of the schedule, if
  /// the model is prepared with them and `partial` is not set. Collective: all ranks read.
  /// Errors: CheckpointError that lists what does not fit.
  engine::LoadResult load(const std::string& path, const LoadModelOptions& options = {});

  /// What the network does with zeros of this shape: layers, shapes, parameters, multiply-adds.
  ///     fmt::print("{}", model.summary({1, 3, 224, 224}).to_string());
  [[nodiscard]] engine::Summary summary(const std::vector<int64_t>& input_shape,
                                        at::ScalarType dtype = at::kFloat) const;

  /// fit() saves a checkpoint after the update at hand, on all ranks, whoever asked. From a
  /// callback.
  void request_checkpoint();
  /// fit() ends after this step; the reason is in what it returns. From a callback, on any rank.
  void stop(std::string reason = "stop() was called");
  /// fit() ends after this epoch and its evaluation: Paddle's `stop_training = True`.
  void stop_training(std::string reason = "stop_training() was called");

  [[nodiscard]] engine::NamedTensors parameters() const;
  [[nodiscard]] const torch::nn::Module& network() const;
  /// Errors: UsageError before prepare().
  [[nodiscard]] optim::Optimizer& optimizer() const;
  [[nodiscard]] const comm::Group& group() const;
  [[nodiscard]] bool is_first_worker() const;

 private:
  /// How a data set is read.
  struct LoaderChoice {
    int64_t batch_size = 1;
    bool shuffle = false;
    bool drop_last = false;
    int num_workers = 0;
    uint64_t seed = 0;
    bool evaluation = false;
  };

  explicit Model(Network network);

  template <typename M>
  static Network make_network(M network) {
    join_job();
    if constexpr (requires { network.core(); }) {
      return detail::network_of(std::move(network));
    } else {
      return detail::network_of(fleet::distributed_model(std::move(network)));
    }
  }
  static void join_job();
  static LoaderChoice train_loader(const FitOptions& options);
  static LoaderChoice eval_loader(const FitOptions& options);
  static data::BatchSampler sampler_for(int64_t samples, const LoaderChoice& choice);
  [[nodiscard]] data::DataLoaderOptions options_for(const LoaderChoice& choice) const;

  template <typename Data>
  std::unique_ptr<Feed> make_feed(Data&& data, const LoaderChoice& choice) const {
    using D = std::remove_cvref_t<Data>;
    if constexpr (detail::IsLoader<D>) {
      return std::make_unique<detail::LoaderFeed<D>>(std::forward<Data>(data));
    } else {
      data::DatasetRef<data::DatasetOf<D>> set(std::forward<Data>(data));
      const int64_t samples = set->size();
      using Loader = data::DataLoader<data::DatasetOf<D>>;
      return std::make_unique<detail::DatasetFeed<Loader>>(
          Loader(std::move(set), sampler_for(samples, choice), options_for(choice)),
          Dealing{.samples = samples,
                  .shuffle = choice.shuffle,
                  .drop_last = choice.drop_last,
                  .seed = choice.seed});
    }
  }

  History run_fit(Feed& train, Feed* eval, const FitOptions& options);
  Logs run_evaluate(Feed& feed, const EvaluateOptions& options);
  std::vector<at::Tensor> run_predict(Feed& feed, const PredictOptions& options);

  std::shared_ptr<detail::Core> core_;
};

}  // namespace argosy::train
