#include "argosy/train/options.h"

#include "argosy/base/check.h"
#include "argosy/fleet/strategy.h"
#include "argosy/train/checkpoint_folder.h"

namespace argosy::train {
namespace {

void check_positive(int64_t value, const char* field) {
  ARGOSY_CHECK(value > 0, "train.fit", "{} must be positive, got {}", field, value);
}

void check_not_negative(int64_t value, const char* field) {
  ARGOSY_CHECK(value >= 0, "train.fit", "{} must not be negative, got {}", field, value);
}

/// What nothing acts on must not seem to.
void check_checkpoint_options(const FitOptions& options) {
  const FitCheckpointOptions& given = options.checkpoint;
  const detail::Keeps keeps = detail::who_keeps(options);
  const auto check = [](bool unset, const char* field, const char* why) {
    ARGOSY_CHECK(unset, "train.fit", "checkpoint.{} is set, and {}", field, why);
  };
  if (keeps != detail::Keeps::kOwn) {
    const char* const why =
        keeps == detail::Keeps::kNone
            ? "there is no folder for checkpoints: set run_dir or checkpoint.dir"
            : "a ModelCheckpoint of the callbacks saves the checkpoints: give it to that one";
    const FitCheckpointOptions unset;
    check(given.every_epochs == unset.every_epochs, "every_epochs", why);
    check(given.every_steps == unset.every_steps, "every_steps", why);
    check(given.keep_last == unset.keep_last, "keep_last", why);
    check(keeps != detail::Keeps::kNone || given.on_signal != OnSignal::kSaveAndReturn,
          "on_signal = kSaveAndReturn",
          why);
  }
  check(given.resume_batch == ResumeBatch::kPerRank || options.resume != Resume::kNever ||
            !given.resume_from.empty(),
        "resume_batch = kGlobal",
        "nothing is resumed: set resume or checkpoint.resume_from");
}

/// Callbacks may show both.
void check_log_options(const FitOptions& options) {
  const auto check = [&](bool unset, const char* field) {
    ARGOSY_CHECK(
        unset || !options.run_dir.empty() || !options.callbacks.empty(),
        "train.fit",
        "log.{} is set, and there is nothing that shows it: set run_dir, or add a callback "
        "such as TensorBoard",
        field);
  };
  check(options.log.class_names.empty(), "class_names");
  check(options.log.hyperparameters.empty(), "hyperparameters");
}

}  // namespace

void FitOptions::validate() const {
  ARGOSY_CHECK(virtual_ranks >= 0 && virtual_ranks <= fleet::kMostVirtualRanks,
               "train.fit",
               "virtual_ranks: expected 0 to {}, got {}",
               fleet::kMostVirtualRanks,
               virtual_ranks);
  check_positive(batch_size, "batch_size");
  check_positive(epochs, "epochs");
  check_not_negative(num_workers, "num_workers");
  check_positive(num_iters.value_or(1), "num_iters");
  check_positive(accumulate_grad_batches, "accumulate_grad_batches");
  check_positive(eval_freq, "eval_freq");
  check_positive(data.eval_batch_size.value_or(1), "data.eval_batch_size");
  check_positive(checkpoint.every_epochs, "checkpoint.every_epochs");
  check_not_negative(checkpoint.every_steps, "checkpoint.every_steps");
  check_not_negative(checkpoint.keep_last, "checkpoint.keep_last");
  check_positive(log.freq, "log.freq");
  ARGOSY_CHECK(log.verbose >= 0 && log.verbose <= 3,
               "train.fit",
               "log.verbose must be 0, 1, 2 or 3, got {}",
               log.verbose);
  check_checkpoint_options(*this);
  check_log_options(*this);
}

}  // namespace argosy::train
