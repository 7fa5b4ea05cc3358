#include "argosy/train/callbacks/early_stopping.h"

#include <fmt/format.h>

#include <cstdio>

#include "argosy/base/check.h"
#include "argosy/train/core.h"
#include "argosy/train/model.h"
#include "argosy/train/numbers.h"

#include <nlohmann/json.hpp>

namespace argosy::train {

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options)
    : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {
  ARGOSY_CHECK(options.patience >= 0,
               "train.EarlyStopping",
               "patience must not be negative, got {}",
               options.patience);
  if (options.baseline.has_value()) {
    monitor_.set_best(*options.baseline);
  }
}

void EarlyStopping::on_train_begin(const Training& training) {
  monitor_.check(training);
  if (!training.resumed) {
    *this = EarlyStopping(options_);
  }
}

void EarlyStopping::on_epoch_end(const Epoch& epoch) {
  const std::optional<double> figure = monitor_.of_epoch(epoch.logs, epoch.evaluates);
  if (!figure.has_value()) {
    return;
  }
  if (monitor_.improves(*figure)) {
    waited_ = 0;
    best_epoch_ = epoch.epoch;
    if (options_.restore_best_weights) {  // those that the figure is of
      const detail::TogetherWeights together(epoch.model.optimizer());
      best_weights_ = engine::state_dict(epoch.model.network()).clone();
    }
    return;
  }
  if (++waited_ > options_.patience) {
    stopped_ = true;
    if (options_.verbose > 0 && epoch.model.is_first_worker()) {
      fmt::print("Epoch {}: Early stopping. The best {} was {} in epoch {}.\n",
                 epoch.epoch + 1,
                 monitor_.name(),
                 shown(monitor_.best()),
                 best_epoch_ + 1);
      std::fflush(stdout);
    }

    epoch.model.stop_training(fmt::format("{} has not improved on {} for {} evaluation{}",
                                          monitor_.name(),
                                          shown(monitor_.best()),
                                          waited_,
                                          waited_ == 1 ? "" : "s"));
  }
}

void EarlyStopping::on_train_end(const Training& training) {
  if (stopped_ && !best_weights_.empty()) {
    engine::load_state_dict(training.model.network(), best_weights_);
    training.model.optimizer().weights_replaced();
  }
}

nlohmann::ordered_json EarlyStopping::state() const {
  return {{"best", detail::to_json(monitor_.best())},
          {"waited", waited_},
          {"best_epoch", best_epoch_},
          {"stopped", stopped_}};
}

void EarlyStopping::load_state(const nlohmann::ordered_json& state) {
  monitor_.set_best(detail::number_in(state, "best"));
  waited_ = state.at("waited").get<int64_t>();
  best_epoch_ = state.at("best_epoch").get<int64_t>();
  stopped_ = state.at("stopped").get<bool>();
}

engine::StateDict EarlyStopping::tensors() const {
  return best_weights_;
}

void EarlyStopping::load_tensors(const engine::StateDict& tensors) {
  best_weights_ = tensors.clone();
}

}  // namespace argosy::train
