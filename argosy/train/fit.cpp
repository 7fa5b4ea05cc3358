#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/train/callbacks/progress_bar.h"
#include "argosy/train/core.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {
namespace {

using Clock = std::chrono::steady_clock;

void check_options(const FitOptions& options, const Feed& train) {
  ARGOSY_CHECK(options.epochs > 0, "train.fit", "epochs must be positive, got {}", options.epochs);
  ARGOSY_CHECK(options.eval_freq > 0 && options.log_freq > 0 && options.save_freq > 0,
               "train.fit",
               "eval_freq, log_freq and save_freq must be positive, got {}, {} and {}",
               options.eval_freq,
               options.log_freq,
               options.save_freq);
  ARGOSY_CHECK(options.accumulate_grad_batches > 0,
               "train.fit",
               "accumulate_grad_batches must be positive, got {}",
               options.accumulate_grad_batches);
  ARGOSY_CHECK(!options.num_iters.has_value() || *options.num_iters > 0,
               "train.fit",
               "num_iters must be positive, got {}",
               options.num_iters.value_or(0));
  ARGOSY_CHECK(options.verbose >= 0 && options.verbose <= 3,
               "train.fit",
               "verbose must be 0, 1, 2 or 3, got {}",
               options.verbose);
  ARGOSY_CHECK(options.accumulate_grad_batches == 1 || train.batches().has_value(),
               "train.fit",
               "accumulate_grad_batches over a stream of unknown length: nobody knows which batch "
               "is the last. Say how many there are: StreamShards::batches.");
}

/// One call of fit(): the places in the epoch and in the update, and what has been summed up.
class Fit final {
 public:
  Fit(Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options)
      : core_(core), model_(model), train_(train), eval_(eval), options_(options) {
    if (options.verbose > 0) {
      callbacks_.emplace_back(ProgressBar());
    }
    callbacks_.insert(callbacks_.end(), options.callbacks.begin(), options.callbacks.end());
    batches_ = train.batches();
  }

  History run() {
    core_.requests = {};
    core_.network.module->train();
    all(&Callback::on_train_begin, training());
    for (epoch_ = 0; epoch_ < options_.epochs && !ended_; ++epoch_) {
      run_epoch();
    }
    history_.steps = core_.steps;
    all(&Callback::on_train_end, training());
    return std::move(history_);
  }

 private:
  template <typename About>
  void all(void (Callback::*hook)(const About&), const About& about) {
    for (const AnyCallback& callback : callbacks_) {
      ((*callback).*hook)(about);
    }
  }

  [[nodiscard]] Training training() const {
    return {
        .model = model_,
        .epochs = options_.epochs,
        .batches = batches_,
        .batch_size = options_.batch_size * core_.group.size() * options_.accumulate_grad_batches,
        .samples = train_.samples(),
        .verbose = options_.verbose,
        .log_freq = options_.log_freq,
        .run_dir = options_.run_dir};
  }

  [[nodiscard]] Epoch epoch_now(const Logs& logs) const {
    return {.model = model_,
            .epoch = epoch_,
            .epochs = options_.epochs,
            .step = core_.steps,
            .evaluates = eval_ != nullptr,
            .seconds = std::chrono::duration<double>(Clock::now() - epoch_begun_).count(),
            .logs = logs,
            .loader = train_.stats()};
  }

  [[nodiscard]] Step step_now(const Logs& logs) const {
    return {.model = model_,
            .epoch = epoch_,
            .batch = batch_,
            .batches = batches_,
            .step = core_.steps,
            .updates = updates_,
            .samples = samples_,
            .loss = loss_,
            .lr = core_.optimizer->lr(),
            .logs = logs};
  }

  void run_epoch() {
    epoch_begun_ = Clock::now();
    const Logs none;
    train_.set_epoch(epoch_);
    epoch_loss_ = {};
    core_.reset_metrics();
    all(&Callback::on_epoch_begin, epoch_now(none));
    Tensors batch;
    for (batch_ = 0; !ended_ && train_.next(batch); ++batch_) {
      run_batch(batch);
    }
    train_.leave();
    Logs logs{{"loss", epoch_loss_.compute(core_.group)}};
    logs.add(core_.metric_values());
    if (eval_ != nullptr && (!ended_ || stop_after_epoch_) &&
        ((epoch_ + 1) % options_.eval_freq == 0 || epoch_ + 1 == options_.epochs)) {
      logs.add(evaluate_now(), "eval_");
    }
    if (!ended_) {
      move_schedule(logs);
    }
    all(&Callback::on_epoch_end, epoch_now(logs));
    history_.epochs.push_back(logs);
    agree_at_epoch_end();
  }

  void move_schedule(const Logs& logs) {
    if (!core_.schedule.has_value()) {
      return;
    }
    core_.schedule->on_epoch_end();
    const bool evaluated = logs.find("eval_loss") != nullptr;
    if (core_.schedule->unit() == optim::ScheduleUnit::kMetric && (evaluated || eval_ == nullptr)) {
      core_.schedule->on_metric(logs[(evaluated ? "eval_" : "") + core_.monitor]);
    }
  }

  Logs evaluate_now() {
    std::vector<AnyCallback> own = options_.callbacks;
    return evaluate(
        core_,
        model_,
        *eval_,
        {.log_freq = options_.log_freq, .verbose = options_.verbose, .callbacks = std::move(own)});
  }

  /// How many batches the update has that this one belongs to: fewer at the end of an epoch.
  [[nodiscard]] int64_t batches_of_update() const {
    const int64_t wanted = options_.accumulate_grad_batches;
    if (wanted == 1) {
      return 1;
    }
    const int64_t first = batch_ - batch_ % wanted;
    return std::min(wanted, *batches_ - first);
  }

  void run_batch(const Tensors& batch) {
    const Logs none;
    const int64_t together = batches_of_update();
    updates_ = batch_ % options_.accumulate_grad_batches == together - 1;
    all(&Callback::on_train_batch_begin, step_now(none));
    const auto pass = [&] { forward_backward(batch, together); };
    if (updates_) {
      pass();
      agree();
      all(&Callback::on_before_update, step_now(none));
      core_.optimizer->step();
      core_.optimizer->zero_grad();
      ++core_.steps;
      if (core_.schedule.has_value()) {
        core_.schedule->on_step();
      }
    } else {
      core_.network.without_sync(pass);
    }
    const bool shown =
        (batch_ + 1) % options_.log_freq == 0 || (batches_.has_value() && batch_ + 1 == *batches_);
    const Logs logs = shown ? core_.metric_values() : Logs();
    all(&Callback::on_train_batch_end, step_now(logs));
    if (updates_) {
      ended_ = ended_ || (options_.num_iters.has_value() && core_.steps >= *options_.num_iters);
    }
  }

  void forward_backward(const Tensors& batch, int64_t together) {
    const Tensors labels = core_.labels_of(batch, "train.fit");
    const Tensors outputs = core_.network.forward(core_.inputs_of(batch, "train.fit"));
    const LossValue loss = core_.loss_of(outputs, labels);
    (together == 1 ? loss.mean : loss.mean / static_cast<double>(together)).backward();
    const auto value = loss.mean.item<double>();
    epoch_loss_.update(value, loss.count);
    if (loss.count > 0) {
      own_loss_ += value * loss.count;
      own_count_ += loss.count;
    }
    own_samples_ += samples_in(batch);
    core_.update_metrics(outputs, labels);
  }

  /// The ranks put together the update's loss and what each has been asked for: one small sum,
  /// after backward, where they have met anyhow.
  void agree() {
    std::array<double, 5> sums{own_loss_,
                               own_count_,
                               static_cast<double>(own_samples_),
                               core_.requests.stop_now ? 1.0 : 0.0,
                               core_.requests.stop_after_epoch ? 1.0 : 0.0};
    sum_over_ranks(sums, core_.group);
    loss_ = sums[0] / sums[1];
    samples_ = static_cast<int64_t>(sums[2]);
    own_loss_ = own_count_ = 0;
    own_samples_ = 0;
    take(sums[3] > 0, sums[4] > 0);
  }

  void agree_at_epoch_end() {
    std::array<double, 2> sums{core_.requests.stop_now ? 1.0 : 0.0,
                               core_.requests.stop_after_epoch ? 1.0 : 0.0};
    sum_over_ranks(sums, core_.group);
    take(sums[0] > 0, sums[1] > 0);
    ended_ = ended_ || stop_after_epoch_;
  }

  void take(bool stop_now, bool stop_after_epoch) {
    ended_ = ended_ || stop_now;
    stop_after_epoch_ = stop_after_epoch_ || stop_after_epoch;
    if (stop_now || stop_after_epoch) {
      history_.ended = Ended::kStopped;
      history_.reason =
          core_.requests.reason.empty() ? "another rank asked for it" : core_.requests.reason;
    }
  }

  Core& core_;
  Model& model_;
  Feed& train_;
  Feed* eval_;
  const FitOptions& options_;
  std::vector<AnyCallback> callbacks_;
  std::optional<int64_t> batches_;
  History history_;

  int64_t epoch_ = 0;
  int64_t batch_ = 0;  // in the epoch
  Clock::time_point epoch_begun_{};
  LossMean epoch_loss_;

  bool updates_ = true;  // whether the batch at hand completes an update
  double own_loss_ = 0;  // of this rank's batches since the last update: Σ mean · count
  double own_count_ = 0;
  int64_t own_samples_ = 0;
  double loss_ = std::numeric_limits<double>::quiet_NaN();  // of the last update, over all ranks
  int64_t samples_ = 0;
  bool ended_ = false;
  bool stop_after_epoch_ = false;
};

}  // namespace

History fit(Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options) {
  core.check_prepared("train.fit");
  ARGOSY_CHECK(core.optimizer.has_value(),
               "train.fit",
               "the model has no optimizer: call prepare(optimizer, loss, metrics) first");
  check_options(options, train);
  check_feed(train, core.group, true);
  return Fit(core, model, train, eval, options).run();
}

}  // namespace argosy::train::detail
