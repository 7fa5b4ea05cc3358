#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/loader_stats.h"
#include "argosy/engine/state_dict.h"
#include "argosy/train/logs.h"
#include "argosy/train/phase.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::checkpoint {
struct Snapshot;
}

namespace argosy::metrics {
class AnyMetric;
}

namespace argosy::train {

class Model;
struct FitOptions;
struct History;

/// What fit() will do, and what it has done so far.
struct Training {
  Model& model;
  int64_t epochs = 1;
  std::optional<int64_t> batches{};  ///< per epoch and rank; unknown for some streams
  int64_t batch_size = 0;  ///< samples of an update, over all ranks and accumulated batches
  int64_t samples = -1;    ///< samples of the data set; -1: a stream
  int verbose = 2;
  int64_t log_freq = 10;
  std::string run_dir{};   ///< empty: no folder
  bool evaluates = false;  ///< fit() has an evaluation set
  bool scales = false;     ///< fit() has a scaler: logs have its "loss_scale"
  bool resumed = false;    ///< resumes from a checkpoint
  bool done = false;  ///< nothing is left to do: at the end, or if a resumed training had ended
  int64_t epoch = 0;  ///< the first epoch, or the resumed one
  int64_t step = 0;   ///< updates before it
  /// The options of fit(), and the names of the model's loss, metrics and schedule. Without a
  /// schedule its name is empty.
  const FitOptions* options = nullptr;
  std::string loss{};
  std::string loss_parameters{};  ///< "label_smoothing=0.1"; empty: all are at their defaults
  std::vector<std::string> metrics{};
  std::string amp{};  ///< type of mixed precision: "bfloat16"; empty: full precision
  std::string schedule{};
  std::string schedule_parameters{};  ///< "step_size=30, gamma=0.1"
  std::string schedule_unit{};        ///< unit of its steps: "epoch"
  std::string monitor{};              ///< the figure that it watches; empty: none
  std::string ema{};                  ///< "decay=0.999"; empty: weights are not averaged
  double base_lr = 0;                 ///< the rate, or the one that the schedule starts from
  /// What fit() did, at its end. nullptr before.
  const History* history = nullptr;
  std::vector<std::string> class_names{};  ///< names of labels 0, 1, …; empty: not known
};

/// An epoch. `logs` is empty at its start.
struct Epoch {
  Model& model;
  int64_t epoch = 0;  ///< from 0
  int64_t epochs = 1;
  int64_t step = 0;        ///< updates since the beginning of training
  bool evaluates = false;  ///< fit() has an evaluation set, though perhaps not in this epoch
  double seconds = 0;
  /// The loss, the metrics, and after an evaluation the same with "eval_" in front: means over all
  /// samples of all ranks.
  const Logs& logs;
  data::LoaderStats loader{};  ///< this rank's
};

/// A batch of training. Figures cover all ranks.
struct Step {
  Model& model;
  int64_t epoch = 0;                 ///< from 0
  int64_t batch = 0;                 ///< in the epoch, from 0
  std::optional<int64_t> batches{};  ///< per epoch
  int64_t step = 0;     ///< updates since the beginning of training, including this one
  bool updates = true;  ///< false: its gradients are accumulated with the next batch's
  /// Set from on_before_update on: the gradients have NaN or infinities, and the scaler of mixed
  /// precision skips this update. It counts as an update, but changes neither weights, optimizer,
  /// schedule nor average.
  bool skipped = false;
  int64_t samples = 0;  ///< samples of all ranks in the batches of this update
  double loss = 0;      ///< mean over the batches of this update; NaN before the first
  double lr = 0;        ///< learning rate of the update
  /// Metrics since the start of the epoch, at every log_freq-th batch and the epoch's last one.
  /// Empty at other batches.
  const Logs& logs;
  /// This rank's batch, as forward takes it; empty on a spare.
  std::span<const at::Tensor> inputs{};
};

/// A batch of evaluate() or predict(). Ranks may have different numbers of batches.
struct EvalStep {
  Model& model;
  int64_t batch = 0;
  std::optional<int64_t> batches{};
  int64_t samples = 0;  ///< of this rank
  double waited = 0;    ///< seconds spent waiting for the loader since the begin of this pass
  /// This rank's batch, as forward takes it. At its end also forward's outputs, and in evaluate()
  /// the labels.
  std::span<const at::Tensor> inputs{};
  std::span<const at::Tensor> outputs{};
  std::span<const at::Tensor> labels{};
};

/// A pass of evaluate() or predict().
struct Evaluation {
  Model& model;
  std::optional<int64_t> batches{};
  int64_t samples = -1;
  int verbose = 2;
  int64_t log_freq = 10;
  /// The result, at the end of evaluate().
  const Logs& logs;
  /// The metrics at the end of evaluate(), for results that are no single figure, such as
  /// compute() of a ConfusionMatrix, which is collective. nullptr at other times.
  const std::vector<metrics::AnyMetric>* metrics = nullptr;
};

/// A place from which a later run can resume: after each update, and after each epoch with its
/// evaluation. Equal on all ranks.
struct SavePoint {
  Model& model;
  int64_t epoch = 0;  ///< the running epoch, from 0; at an epoch's end the one that ended
  int64_t step = 0;   ///< updates since the beginning of training
  bool epoch_end = false;
  bool evaluates = false;  ///< fit() has an evaluation set, though perhaps not in this epoch
  bool requested = false;  ///< Model::request_checkpoint() was called, or a signal came
  bool last = false;       ///< fit() ends here
  /// An epoch's figures at its end, else empty.
  const Logs& logs;
  /// Returns the whole state of the training, made at the first call for all callbacks.
  /// Collective.
  const std::function<const checkpoint::Snapshot&()>& snapshot;
};

/// Something to do during training. Derive from it and override the hooks that you need.
///
///     struct StopOnNan : train::Callback {
///       void on_train_batch_end(const train::Step& step) override {
///         if (!std::isfinite(step.loss)) step.model.stop("the loss is not finite");
///       }
///     };
///     model.fit(train, {.callbacks = {StopOnNan()}});
///
/// Hooks have Paddle's names. They run on every rank at the same places, in the order of the
/// list, so a hook may communicate if it does so on all ranks. Before you write or print, ask
/// step.model.is_first_worker(). An exception of a hook ends fit().
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void on_train_begin(const Training& /*training*/) {}
  virtual void on_train_end(const Training& /*training*/) {}
  /// fit() ends by an exception with the text `what`, perhaps on this rank alone: do not
  /// communicate. Exceptions of this hook are dropped.
  virtual void on_exception(const Training& /*training*/, const std::string& /*what*/) {}
  virtual void on_epoch_begin(const Epoch& /*epoch*/) {}
  virtual void on_epoch_end(const Epoch& /*epoch*/) {}
  virtual void on_train_batch_begin(const Step& /*step*/) {}
  /// Called before the optimizer's step. Gradients are averaged over ranks and batches, and
  /// unscaled.
  virtual void on_before_update(const Step& /*step*/) {}
  virtual void on_train_batch_end(const Step& /*step*/) {}
  /// A phase of this rank's time has ended. Called several times per batch, so do little.
  virtual void on_phase(const Phase& /*phase*/) {}

  /// Called after the other hooks of its place. A callback that saves checkpoints asks for the
  /// snapshot.
  virtual void on_save_point(const SavePoint& /*point*/) {}

  virtual void on_eval_begin(const Evaluation& /*evaluation*/) {}
  virtual void on_eval_end(const Evaluation& /*evaluation*/) {}
  virtual void on_eval_batch_begin(const EvalStep& /*step*/) {}
  virtual void on_eval_batch_end(const EvalStep& /*step*/) {}
  virtual void on_predict_begin(const Evaluation& /*evaluation*/) {}
  virtual void on_predict_end(const Evaluation& /*evaluation*/) {}
  virtual void on_predict_batch_begin(const EvalStep& /*step*/) {}
  virtual void on_predict_batch_end(const EvalStep& /*step*/) {}

  /// The name of this callback in a checkpoint. Empty: a checkpoint keeps nothing of it.
  [[nodiscard]] virtual std::string name() const { return {}; }
  /// The state for a checkpoint: numbers, texts, lists. It must be equal on all ranks.
  [[nodiscard]] virtual nlohmann::ordered_json state() const;
  virtual void load_state(const nlohmann::ordered_json& state);
  /// Tensors for a checkpoint, equal on all ranks. load_tensors() is called after load_state() if
  /// there were any. A checkpoint that does not know a callback with tensors is an error.
  [[nodiscard]] virtual engine::StateDict tensors() const { return {}; }
  virtual void load_tensors(const engine::StateDict& /*tensors*/) {}

 protected:
  Callback() = default;
  Callback(const Callback&) = default;
  Callback(Callback&&) = default;
  Callback& operator=(const Callback&) = default;
  Callback& operator=(Callback&&) = default;
};

/// A callback in a list. Make it from any class derived from Callback, or from a shared_ptr if
/// you need the callback's figures afterwards.
class AnyCallback final {
 public:
  template <std::derived_from<Callback> C>
  AnyCallback(C callback)  // NOLINT(google-explicit-constructor): {EarlyStopping(), Mine()}
      : callback_(std::make_shared<C>(std::move(callback))) {}
  template <std::derived_from<Callback> C>
  AnyCallback(std::shared_ptr<C> callback)  // NOLINT(google-explicit-constructor)
      : callback_(std::move(callback)) {}

  [[nodiscard]] Callback* operator->() const { return callback_.get(); }
  [[nodiscard]] Callback& operator*() const { return *callback_; }

 private:
  std::shared_ptr<Callback> callback_;
};

}  // namespace argosy::train
