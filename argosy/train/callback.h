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

/// What fit() is about to do, and what it has done so far.
struct Training {
  Model& model;
  int64_t epochs = 1;
  std::optional<int64_t> batches{};  ///< per epoch and rank; unknown for some streams
  int64_t batch_size = 0;            ///< of one update: over all ranks and accumulated batches
  int64_t samples = -1;              ///< of the data set; -1: a stream's
  int verbose = 2;
  int64_t log_freq = 10;
  std::string run_dir{};   ///< empty: none
  bool evaluates = false;  ///< there is a set to evaluate on
  bool scales = false;     ///< with a scaler: logs have its "loss_scale"
  bool resumed = false;    ///< goes on where a checkpoint ends
  bool done = false;       ///< nothing is left to do; so at its end, and where it ended before
  int64_t epoch = 0;       ///< the first, or the one that goes on
  int64_t step = 0;        ///< updates made before
  /// What fit() was told; what its model was prepared with: names, a schedule's empty without one.
  const FitOptions* options = nullptr;
  std::string loss{};
  std::vector<std::string> metrics{};
  std::string amp{};  ///< what mixed precision computes in: "bfloat16"; empty: full precision
  std::string schedule{};
  std::string schedule_parameters{};  ///< "step_size=30, gamma=0.1"
  std::string schedule_unit{};        ///< what a step of it is: "epoch"
  double base_lr = 0;                 ///< the rate that the schedule starts from, or the rate
  /// What fit() did, at its end; nullptr before.
  const History* history = nullptr;
  std::vector<std::string> class_names{};  ///< of labels 0, 1, …; empty: nobody has said
};

/// An epoch; `logs` is empty at its begin.
struct Epoch {
  Model& model;
  int64_t epoch = 0;  ///< from 0
  int64_t epochs = 1;
  int64_t step = 0;        ///< updates since the beginning of training
  bool evaluates = false;  ///< fit() has an evaluation set, though perhaps not in this epoch
  double seconds = 0;
  /// loss, metrics and, where there was an evaluation, the same with "eval_" in front: means over
  /// all samples of all ranks.
  const Logs& logs;
  data::LoaderStats loader{};  ///< of this rank
};

/// A batch of training. Figures are those of all ranks.
struct Step {
  Model& model;
  int64_t epoch = 0;                 ///< from 0
  int64_t batch = 0;                 ///< in the epoch, from 0
  std::optional<int64_t> batches{};  ///< per epoch
  int64_t step = 0;                  ///< updates since the beginning of training, this one included
  bool updates = true;               ///< false: its gradients are added to the next batch's
  /// From on_before_update on: the gradients have NaN or infinities, and the scaler of mixed
  /// precision passes this update by. It counts as one, and changes neither weights, optimizer,
  /// schedule nor average.
  bool skipped = false;
  int64_t samples = 0;  ///< of all ranks, in the batches of this update
  double loss = 0;      ///< mean of the batches of this update; NaN before the first one
  double lr = 0;        ///< of the update; at its end the one that it was made with
  /// Metrics since the epoch's begin: at every log_freq-th batch and the epoch's last one, else
  /// empty.
  const Logs& logs;
  std::span<const at::Tensor> inputs{};  ///< of this rank's batch, as forward takes them
};

/// A batch of evaluate() or predict(). Ranks may have different numbers of them.
struct EvalStep {
  Model& model;
  int64_t batch = 0;
  std::optional<int64_t> batches{};
  int64_t samples = 0;  ///< of this rank
  double waited = 0;    ///< for the loader, since the begin of this pass, in seconds
  /// This rank's batch, as forward takes it; at its end also what forward gave, and in evaluate()
  /// the labels.
  std::span<const at::Tensor> inputs{};
  std::span<const at::Tensor> outputs{};
  std::span<const at::Tensor> labels{};
};

/// What evaluate() or predict() goes over.
struct Evaluation {
  Model& model;
  std::optional<int64_t> batches{};
  int64_t samples = -1;
  int verbose = 2;
  int64_t log_freq = 10;
  /// The result, at the end of evaluate().
  const Logs& logs;
  /// The metrics at the end of evaluate(), for what is no single figure: a ConfusionMatrix'
  /// compute(), which is collective. nullptr elsewhere.
  const std::vector<metrics::AnyMetric>* metrics = nullptr;
};

/// A place that a later run can go on from: after each update, and after each epoch with its
/// evaluation. The same on all ranks.
struct SavePoint {
  Model& model;
  int64_t epoch = 0;  ///< that is going on; at an epoch's end the one that ended, from 0
  int64_t step = 0;   ///< updates since the beginning of training
  bool epoch_end = false;
  bool evaluates = false;  ///< fit() has an evaluation set, though perhaps not in this epoch
  bool requested = false;  ///< somebody called Model::request_checkpoint(), or a signal came
  bool last = false;       ///< fit() ends here
  /// At an epoch's end its figures, else empty.
  const Logs& logs;
  /// All of the training's state, made at the first call, once for all callbacks. Collective.
  const std::function<const checkpoint::Snapshot&()>& snapshot;
};

/// Something that happens while training: derive from it, with the hooks that it needs.
///
///     struct StopOnNan : train::Callback {
///       void on_train_batch_end(const train::Step& step) override {
///         if (!std::isfinite(step.loss)) step.model.stop("the loss is not finite");
///       }
///     };
///     model.fit(train, {.callbacks = {StopOnNan()}});
///
/// Hooks have Paddle's names and run on every rank, in the order of the list, at the same places: a
/// hook may communicate if it does so on all of them. Who writes or prints asks
/// step.model.is_first_worker(). What a hook throws ends fit().
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void on_train_begin(const Training& /*training*/) {}
  virtual void on_train_end(const Training& /*training*/) {}
  /// fit() ends by an exception, perhaps on this rank alone: do not communicate. `what` is its
  /// text. What this hook throws is dropped.
  virtual void on_exception(const Training& /*training*/, const std::string& /*what*/) {}
  virtual void on_epoch_begin(const Epoch& /*epoch*/) {}
  virtual void on_epoch_end(const Epoch& /*epoch*/) {}
  virtual void on_train_batch_begin(const Step& /*step*/) {}
  /// Gradients are there, averaged over ranks and batches, and unscaled; the optimizer comes next.
  virtual void on_before_update(const Step& /*step*/) {}
  virtual void on_train_batch_end(const Step& /*step*/) {}
  /// A piece of this rank's time has ended. Comes several times a batch: do little.
  virtual void on_phase(const Phase& /*phase*/) {}

  /// After the other hooks of its place. Who keeps checkpoints asks for the snapshot.
  virtual void on_save_point(const SavePoint& /*point*/) {}

  virtual void on_eval_begin(const Evaluation& /*evaluation*/) {}
  virtual void on_eval_end(const Evaluation& /*evaluation*/) {}
  virtual void on_eval_batch_begin(const EvalStep& /*step*/) {}
  virtual void on_eval_batch_end(const EvalStep& /*step*/) {}
  virtual void on_predict_begin(const Evaluation& /*evaluation*/) {}
  virtual void on_predict_end(const Evaluation& /*evaluation*/) {}
  virtual void on_predict_batch_begin(const EvalStep& /*step*/) {}
  virtual void on_predict_batch_end(const EvalStep& /*step*/) {}

  /// What a checkpoint keeps under. Empty: nothing is kept.
  [[nodiscard]] virtual std::string name() const { return {}; }
  /// What a checkpoint keeps of it: numbers, texts, lists. Equal on all ranks.
  [[nodiscard]] virtual nlohmann::ordered_json state() const;
  virtual void load_state(const nlohmann::ordered_json& state);
  /// Tensors that a checkpoint keeps of it. Equal on all ranks. load_tensors() comes after
  /// load_state(), where there were any.
  [[nodiscard]] virtual engine::StateDict tensors() const { return {}; }
  virtual void load_tensors(const engine::StateDict& /*tensors*/) {}

 protected:
  Callback() = default;
  Callback(const Callback&) = default;
  Callback(Callback&&) = default;
  Callback& operator=(const Callback&) = default;
  Callback& operator=(Callback&&) = default;
};

/// A callback in a list: made of any class derived from Callback, or of a shared_ptr to one whose
/// figures are wanted afterwards.
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
