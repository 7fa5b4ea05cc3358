#include "argosy/train/callbacks/reduce_lr_on_plateau.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/checkpoint/states.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::train {

ReduceLROnPlateau::ReduceLROnPlateau(const ReduceLROnPlateauOptions& options)
    : options_(options), monitor_(options.monitor, options.mode, options.min_delta) {
  constexpr const char* kWhere = "train.ReduceLROnPlateau";
  ARGOSY_CHECK(options.factor > 0 && options.factor < 1,
               kWhere,
               "factor must be between 0 and 1, got {}",
               options.factor);
  ARGOSY_CHECK(options.patience >= 0 && options.cooldown >= 0 && options.min_lr >= 0,
               kWhere,
               "patience, cooldown and min_lr must not be negative, got {}, {} and {}",
               options.patience,
               options.cooldown,
               options.min_lr);
}

void ReduceLROnPlateau::on_train_begin(const Training& training) {
  monitor_.check(training);
  schedule_.emplace(
      training.model.optimizer(),
      optim::ReduceLROnPlateauOptions{
          .mode = monitor_.larger_is_better() ? optim::PlateauMode::kMax : optim::PlateauMode::kMin,
          .factor = options_.factor,
          .patience = options_.patience,
          .threshold = options_.min_delta,
          .threshold_mode = optim::ThresholdMode::kAbs,
          .cooldown = options_.cooldown,
          .min_lr = options_.min_lr});
  if (const auto saved = std::exchange(saved_, std::nullopt); saved.has_value()) {
    schedule_->load_state_dict(*saved);
  }
}

void ReduceLROnPlateau::on_epoch_end(const Epoch& epoch) {
  const std::optional<double> figure = monitor_.of_epoch(epoch.logs, epoch.evaluates);
  if (!figure.has_value()) {
    return;
  }
  const double before = epoch.model.optimizer().lr();
  schedule_->on_metric(*figure);
  const double after = epoch.model.optimizer().lr();
  if (after < before && options_.verbose > 0 && epoch.model.is_first_worker()) {
    fmt::print(
        "Epoch {}: {} has stopped getting better, the learning rate goes from {:.4g} to {:.4g}.\n",
        epoch.epoch + 1,
        monitor_.name(),
        before,
        after);
    std::fflush(stdout);
  }
}

nlohmann::ordered_json ReduceLROnPlateau::state() const {
  return checkpoint::to_json(schedule_->state_dict());
}

void ReduceLROnPlateau::load_state(const nlohmann::ordered_json& state) {
  saved_ = checkpoint::schedule_state(state);  // the optimizer is known when training begins
}

}  // namespace argosy::train
