#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/exit_codes.h"
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

/// Samples per update of a run that goes on with another number of ranks.
enum class ResumeBatch {
  kPerRank,  ///< batch_size of each rank: fewer ranks, fewer samples
  kGlobal,   ///< as many as before: batch_size is divided between the ranks anew
};

/// What fit() does with SIGTERM, SIGUSR1 (Slurm's `--signal=USR1@60`) and SIGINT (Ctrl-C; a later
/// one, 0.3 s after it, ends the process at once) where it keeps checkpoints.
enum class OnSignal {
  kSaveAndExit,    ///< saves after the update at hand; the process ends with kResumeExitCode (75),
                   ///< by SIGINT where that came to all ranks: shells stop their loops for nothing
                   ///< less
  kSaveAndReturn,  ///< the same, and fit() returns: History::ended is kPreempted
  kIgnore,         ///< leaves signals alone
};

/// What fit() does. Names and defaults are Paddle's where it has them.
struct FitOptions {
  int64_t batch_size = 1;                    ///< per rank; not with a loader
  std::optional<int64_t> eval_batch_size{};  ///< unset: batch_size
  int64_t epochs = 1;
  int64_t eval_freq = 1;  ///< evaluate after every so many epochs, and the last
  int64_t log_freq = 10;  ///< batches between two lines of progress
  /// Where checkpoints are kept; unset: `checkpoints` in run_dir; without that none are. What is
  /// kept: see ModelCheckpoint, of which one for this folder takes the place of the next three.
  std::string save_dir{};
  int64_t save_freq = 1;   ///< epochs between two checkpoints
  int64_t save_steps = 0;  ///< also after every so many updates; 0: not
  int64_t keep_last = 3;   ///< of the checkpoints so many of the newest stay; 0: all
  /// 0: silent; 1: a bar; 2: a line every log_freq batches; 3: with the loader's times.
  int verbose = 2;
  bool drop_last = false;  ///< not with a loader
  bool shuffle = true;     ///< not with a loader
  int num_workers = 0;     ///< not with a loader
  uint64_t seed = 0;       ///< of the samples' order and augmentation; not with a loader
  std::vector<AnyCallback> callbacks{};
  /// Of labels 0, 1, …: stand below the pictures of evaluations. Empty: what classes() of the data
  /// set says, where it has one, else numbers.
  std::vector<std::string> class_names{};
  /// Batches whose gradients are averaged before an update. A shorter rest of an epoch is one
  /// update too.
  int64_t accumulate_grad_batches = 1;
  std::optional<int64_t> num_iters{};  ///< ends after so many updates, whatever epochs says
  std::string run_dir{};               ///< figures, configuration, page and checkpoints of the run
  Resume resume = Resume::kNever;
  /// A checkpoint, or a folder of them: goes on from there and not from save_dir. With kAuto or
  /// kMust once only: started again it goes on from what it has saved itself.
  std::string resume_from{};
  ResumeBatch resume_batch = ResumeBatch::kPerRank;
  OnSignal on_signal = OnSignal::kSaveAndExit;
  /// What the program has chosen beside these options, for run.json, TensorBoard and
  /// `argosy runs compare`: {{"dropout", "0.3"}}.
  std::map<std::string, std::string> hyperparameters{};
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
  kFinished,   ///< all epochs, or num_iters
  kStopped,    ///< somebody called stop() or stop_training()
  kPreempted,  ///< a signal came; a checkpoint is there to go on from
};

/// What fit() did.
struct History {
  std::vector<Logs> epochs{};  ///< figures of each epoch of this call, also its evaluation's
  Ended ended = Ended::kFinished;
  std::string reason{};      ///< of stop()
  bool interrupted = false;  ///< kPreempted by SIGINT, which came to all ranks
  int64_t steps = 0;         ///< updates since the beginning of training
};

}  // namespace argosy::train
