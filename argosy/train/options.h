#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/train/callback.h"
#include "argosy/train/feed.h"
#include "argosy/train/logs.h"

namespace argosy::train {

/// Whether fit() goes on where a checkpoint of an earlier run ends.
enum class Resume {
  kNever,
  kAuto,  ///< the newest whole checkpoint of the run, if there is one
  kMust,  ///< the same; none is an error
};

/// What fit() does. Names and defaults are Paddle's where it has them.
struct FitOptions {
  int64_t batch_size = 1;                    ///< per rank; not with a loader
  std::optional<int64_t> eval_batch_size{};  ///< unset: batch_size
  int64_t epochs = 1;
  int64_t eval_freq = 1;   ///< evaluate after every so many epochs, and the last
  int64_t log_freq = 10;   ///< batches between two lines of progress
  std::string save_dir{};  ///< for checkpoints; unset: run_dir's, or none
  int64_t save_freq = 1;   ///< epochs between two checkpoints
  /// 0: silent; 1: a bar; 2: a line every log_freq batches; 3: with the loader's times.
  int verbose = 2;
  bool drop_last = false;  ///< not with a loader
  bool shuffle = true;     ///< not with a loader
  int num_workers = 0;     ///< not with a loader
  uint64_t seed = 0;       ///< of the samples' order and augmentation; not with a loader
  std::vector<AnyCallback> callbacks{};
  /// Batches whose gradients are averaged before an update. A shorter rest of an epoch is one
  /// update too.
  int64_t accumulate_grad_batches = 1;
  std::optional<int64_t> num_iters{};  ///< ends after so many updates, whatever epochs says
  std::string run_dir{};               ///< figures, configuration, page and checkpoints of the run
  Resume resume = Resume::kNever;
};

struct EvaluateOptions {
  int64_t batch_size = 1;  ///< per rank; not with a loader
  int64_t log_freq = 10;
  int verbose = 2;
  int num_workers = 0;  ///< not with a loader
  std::vector<AnyCallback> callbacks{};
  std::optional<int64_t> num_iters{};  ///< the first batches of each rank only
};

struct PredictOptions {
  int64_t batch_size = 1;  ///< per rank; not with a loader
  int verbose = 1;
  int num_workers = 0;  ///< not with a loader
  std::vector<AnyCallback> callbacks{};
};

/// Why fit() ended.
enum class Ended {
  kFinished,  ///< all epochs, or num_iters
  kStopped,   ///< somebody called stop() or stop_training()
};

/// What fit() did.
struct History {
  std::vector<Logs> epochs{};  ///< figures of each epoch of this call, also its evaluation's
  Ended ended = Ended::kFinished;
  std::string reason{};  ///< of stop()
  int64_t steps = 0;     ///< updates since the beginning of training
};

}  // namespace argosy::train
