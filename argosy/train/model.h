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
#include "argosy/train/training_step.h"

namespace argosy::train {

namespace detail {
class Core;
struct FitStart;
}  // namespace detail

struct PrepareOptions {
  /// optim::per_epoch(optim::StepLR(optimizer, …)), per_step(…) or optim::ReduceLROnPlateau.
  std::optional<optim::ScheduleHandle> schedule{};
  /// The figure that a ReduceLROnPlateau watches. It comes from the evaluation, or from the
  /// training if there is none. Other schedules refuse it.
  std::string monitor = "loss";
  /// Averages the weights over the training, after each update. evaluate(), predict() and save()
  /// then use the average.
  std::optional<optim::ExponentialMovingAverageOptions> ema{};
  /// Mixed precision in training, evaluate() and predict(). Unset: full precision.
  std::optional<AmpOptions> amp{};
};

struct LoadModelOptions {
  /// Loads what fits by name, shape and type, and reports the rest.
  bool partial = false;
  /// Turns names of the file into names of the model, see checkpoint::ReadWeightsOptions.
  std::vector<checkpoint::Rename> renames{};
  /// Loads only the weights of a checkpoint; optimizer, schedule and number of updates stay.
  bool reset_optimizer = false;
};

/// A network with everything needed to train it: paddle.Model for C++.
///
///     vision::ResNet net = vision::resnet18({.num_classes = 102});
///     train::Model model(net);
///     model.prepare(
///         optim::Momentum(net, {.lr = 0.1}), loss::CrossEntropy(), {metrics::Accuracy()});
///     model.fit(train, valid, {.batch_size = 16, .epochs = 10, .num_workers = 2});
///     train::Logs result = model.evaluate(valid, {.batch_size = 64});  // loss, acc
///     model.save("flowers.pt");                                        // for torch.load
///
/// Under `argosy launch` the same program trains on all ranks: the network is wrapped
/// (DistributedDataParallel), data sets are divided among the ranks, and printed and returned
/// figures cover all ranks. Calls are collective: all ranks make them in the same order, from one
/// thread per process. A Model is a handle: copies are the same model.
///
/// Network: a module holder, or a shared_ptr to a module, whose forward takes one to four tensors
/// and returns tensors; or a DistributedDataParallel around one. Batches: a tensor, or a tuple or
/// struct of tensors. Forward takes the first ones, and the others are labels. A network whose
/// forward takes the labels too, and returns the loss, says so: see text::GptLoss.
class Model final {
 public:
  /// Joins the job (fleet::init()) unless the program has. Collective.
  template <typename M>
  requires(!std::is_same_v<std::remove_cvref_t<M>, Model>) explicit Model(M network)
      : Model(make_network(std::move(network))) {}

  /// Sets what the model trains with. A second call replaces all of it. Collective.
  /// `optimizer` updates the network's parameters; fleet::distributed_optimizer()'s works too.
  /// `options` may have a schedule of its learning rate, which fit() moves by its unit.
  /// Errors: UsageError for an amp.dtype that the device does not support, and for amp with a
  /// scaler together with DistributedStrategy::overlap_update, whose updates come too early to skip
  /// them.
  void prepare(const optim::Optimizer& optimizer,
               loss::Loss loss,
               std::vector<metrics::AnyMetric> metrics = {},
               PrepareOptions options = {});
  /// For a fit() with a training_step that needs no loss and no metrics of prepare().
  void prepare(const optim::Optimizer& optimizer, PrepareOptions options = {});
  /// Enough for evaluate() and predict().
  void prepare(loss::Loss loss,
               std::vector<metrics::AnyMetric> metrics = {},
               const std::optional<AmpOptions>& amp = {});

  /// Says in a sentence that an optimizer is not one of Argosy's.
  template <typename Optimizer, typename... Rest>
  requires(!std::convertible_to<Optimizer, const optim::Optimizer&> &&
           !std::convertible_to<Optimizer, loss::Loss>) void prepare(const Optimizer&, Rest&&...) {
    static_assert(std::derived_from<Optimizer, optim::Optimizer>,
                  "prepare() takes the optimizers of argosy::optim, which have libtorch's names "
                  "and numbers; torch::optim's belong to a loop of your own: see "
                  "docs/reference/libtorch.md");
  }

  /// Trains. `train` and `eval` are data sets, or loaders whose samplers know the ranks
  /// (fleet::distributed_batch_sampler, fleet::evaluation_sampler).
  /// Errors: UsageError for a loader whose sampler gives all ranks the same samples, and for a
  /// loader's options beside a loader. Exceptions of data sets, network and callbacks pass through.
  template <typename Train>
  History fit(Train&& train, const FitOptions& options = {}) {
    const auto start = begin_fit(options, dealt_to(train));
    const auto feed = make_feed(std::forward<Train>(train), train_loader(options));
    return run_fit(*feed, nullptr, options, *start);
  }
  template <typename Train, typename Eval>
  requires(!std::is_convertible_v<Eval, FitOptions>) History
      fit(Train&& train, Eval&& eval, const FitOptions& options = {}) {
    const auto start = begin_fit(options, dealt_to(train));
    const auto feed = make_feed(std::forward<Train>(train), train_loader(options));
    const auto eval_feed = make_feed(std::forward<Eval>(eval), eval_loader(options));
    return run_fit(*feed, eval_feed.get(), options, *start);
  }

  /// Returns loss and metrics over the whole set, each sample once for any number of ranks. The
  /// result is the same on every rank.
  template <typename Data>
  Logs evaluate(Data&& data, const EvaluateOptions& options = {}) {
    const auto feed = make_feed(
        std::forward<Data>(data),
        {.batch_size = options.batch_size, .num_workers = options.num_workers, .evaluation = true});
    return run_evaluate(*feed, options);
  }

  /// Returns the outputs for the whole set in its order, on every rank and on the CPU: one tensor
  /// for each output of forward.
  template <typename Data>
  std::vector<at::Tensor> predict(Data&& data, const PredictOptions& options = {}) {
    const auto feed = make_feed(
        std::forward<Data>(data),
        {.batch_size = options.batch_size, .num_workers = options.num_workers, .evaluation = true});
    return run_predict(*feed, options);
  }

  /// Trains on one batch of this rank: forward, backward and a step of the optimizer. Returns loss
  /// and metrics of all ranks' batches. For loops of your own. Here and in the next two, tensors
  /// may lie on any device.
  Logs train_batch(const Tensors& inputs,
                   const Tensors& labels,
                   const TrainBatchOptions& options = {});
  /// Returns loss and metrics of all ranks' batches.
  Logs eval_batch(const Tensors& inputs, const Tensors& labels);
  /// Returns this rank's outputs on the network's device.
  Tensors predict_batch(const Tensors& inputs);

  /// Saves what the ending of `path` says. `.pt`, `.pth` and `.safetensors` are weights that Python
  /// reads, those of the average if there is one. Without an ending, `path` becomes a checkpoint's
  /// folder with the states of the optimizer and the schedule too. Rank 0 writes, and all ranks
  /// return when it is on the disk. Collective.
  /// Errors: UsageError for another ending; CheckpointError on all ranks.
  void save(const std::string& path) const;
  /// Loads weights from any file that checkpoint::read_weights() reads (.pt, .pth, .safetensors,
  /// .pdparams). From a checkpoint's folder it also loads the states of the optimizer and the
  /// schedule, if the model is prepared with them and `partial` is not set. Weights alone take the
  /// place of those that ranks have of their own (localsgd, diloco). Collective: all ranks read.
  /// Errors: CheckpointError that lists what does not fit.
  engine::LoadResult load(const std::string& path, const LoadModelOptions& options = {});

  /// Runs the network on zeros of this shape, and returns layers, shapes, parameters and
  /// multiply-adds:
  ///
  ///     fmt::print("{}", model.summary({1, 3, 224, 224}).to_string());
  [[nodiscard]] engine::Summary summary(const std::vector<int64_t>& input_shape,
                                        at::ScalarType dtype = at::kFloat) const;

  /// Lets fit() save a checkpoint after the current update, on all ranks. Call it from a callback,
  /// on any rank.
  void request_checkpoint();
  /// Lets fit() end after this step and return the reason. Call it from a callback, on any rank.
  void stop(std::string reason = "stop() was called");
  /// Lets fit() end after this epoch and its evaluation, like Paddle's `stop_training = True`.
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
    int64_t micro_batches = 1;
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
      static_assert(data::detail::check_dataset<data::DatasetOf<D>>());
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

  /// Checks the options, locks the folders and deals the virtual ranks, to which the feeds are
  /// dealt. Collective.
  [[nodiscard]] std::shared_ptr<detail::FitStart> begin_fit(const FitOptions& options,
                                                            std::optional<int64_t> dealt_to) const;
  /// Returns to how many virtual ranks a loader is dealt (0: to none), or nullopt for a data set,
  /// which fit() deals.
  template <typename Data>
  static std::optional<int64_t> dealt_to(const Data& data) {
    if constexpr (detail::IsLoader<std::remove_cvref_t<Data>>) {
      return data.turns().virtual_ranks;
    } else {
      return std::nullopt;
    }
  }
  History run_fit(Feed& train, Feed* eval, const FitOptions& options, detail::FitStart& start);
  Logs run_evaluate(Feed& feed, const EvaluateOptions& options);
  std::vector<at::Tensor> run_predict(Feed& feed, const PredictOptions& options);

  std::shared_ptr<detail::Core> core_;
};

}  // namespace argosy::train
