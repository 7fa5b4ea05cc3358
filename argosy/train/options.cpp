#include "argosy/train/options.h"

#include <algorithm>

#include "argosy/base/check.h"
#include "argosy/train/callbacks/model_checkpoint.h"

namespace argosy::train {
namespace {

void check_positive(int64_t value, const char* field) {
  ARGOSY_CHECK(value > 0, "train.fit", "{} must be positive, got {}", field, value);
}

void check_not_negative(int64_t value, const char* field) {
  ARGOSY_CHECK(value >= 0, "train.fit", "{} must not be negative, got {}", field, value);
}

bool keeps_checkpoints(const FitOptions& options) {
  return !options.run_dir.empty() || !options.checkpoint.dir.empty() ||
         std::any_of(
             options.callbacks.begin(), options.callbacks.end(), [](const AnyCallback& callback) {
               return dynamic_cast<const ModelCheckpoint*>(&*callback) != nullptr;
             });
}

}  // namespace

void FitOptions::validate() const {
  check_positive(batch_size, "batch_size");
  check_positive(epochs, "epochs");
  check_not_negative(num_workers, "num_workers");
  check_positive(num_iters.value_or(1), "num_iters");
  check_positive(accumulate_grad_batches, "accumulate_grad_batches");
  check_positive(eval_freq, "eval_freq");
  check_positive(data.eval_batch_size.value_or(1), ".data.eval_batch_size");
  check_positive(checkpoint.every_epochs, ".checkpoint.every_epochs");
  check_not_negative(checkpoint.every_steps, ".checkpoint.every_steps");
  check_not_negative(checkpoint.keep_last, ".checkpoint.keep_last");
  check_positive(log.freq, "log.freq");
  ARGOSY_CHECK(log.verbose >= 0 && log.verbose <= 3,
               "train.fit",
               "log.verbose must be 0, 1, 2 or 3, got {}",
               log.verbose);
  ARGOSY_CHECK(checkpoint.every_steps == 0 || keeps_checkpoints(*this),
               "train.fit",
               "checkpoint.every_steps is set, and there is no folder for checkpoints: set run_dir "
               "or checkpoint.dir");
}

}  // namespace argosy::train
