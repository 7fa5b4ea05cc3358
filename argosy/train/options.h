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

/// Whether fit() resumes from a checkpoint of an earlier run.
enum class Resume {
  kNever,
  kAuto,  ///< resumes from the newest whole checkpoint of the run, if there is one
  kMust,  ///< the same, but a missing checkpoint is an error
};

/// Samples per update of a run that resumes with another number of ranks.
enum class ResumeBatch {
  kPerRank,  ///< batch_size on each rank, so fewer ranks mean fewer samples
  kGlobal,   ///< as many as before, divided among the ranks again
};

/// What fit() does on SIGTERM, SIGUSR1 (Slurm's `--signal=USR1@60`) and SIGINT (Ctrl-C) if it keeps
/// checkpoints. A second SIGINT at least 0.3 s later ends the process at once.
enum class OnSignal {
  kSaveAndExit,  ///< saves after the current update; the process ends with kResumeExitCode (75), or
                 ///< by SIGINT if all ranks got that, because only then shells stop their loops
  kSaveAndReturn,  ///< saves too, but fit() returns: History::ended is kPreempted
  kIgnore,         ///< leaves signals alone
};

/// Options of fit(). Names and defaults are Paddle's where Paddle has them.
struct FitOptions {
  int64_t batch_size = 1;                    ///< per rank; not with a loader
  std::optional<int64_t> eval_batch_size{};  ///< unset: batch_size
  int64_t epochs = 1;
  int64_t eval_freq = 1;  ///< evaluates after every so many epochs, and the last
  int64_t log_freq = 10;  ///< batches between two lines of progress
  /// Folder of the checkpoints. Unset: `checkpoints` in run_dir; without a run_dir fit() saves
  /// none. A ModelCheckpoint for this folder in `callbacks` replaces the next three options.
  std::string save_dir{};
  int64_t save_freq = 1;   ///< epochs between two checkpoints
  int64_t save_steps = 0;  ///< also after every so many updates; 0: never
  int64_t keep_last = 3;   ///< number of newest checkpoints that stay; 0: all
  /// 0: silent; 1: a bar; 2: a line every log_freq batches; 3: with the loader's times.
  int verbose = 2;
  bool drop_last = false;  ///< not with a loader
  bool shuffle = true;     ///< not with a loader
  int num_workers = 0;     ///< not with a loader
  uint64_t seed = 0;       ///< seed of the order and the augmentation; not with a loader
  std::vector<AnyCallback> callbacks{};
  /// Names of labels 0, 1, …, shown below the pictures of evaluations. Empty: those of the data
  /// set's classes(), or numbers without it.
  std::vector<std::string> class_names{};
  /// Number of batches whose gradients are averaged for an update. A shorter rest of an epoch is an
  /// update too.
  int64_t accumulate_grad_batches = 1;
  std::optional<int64_t> num_iters{};  ///< ends after so many updates, whatever `epochs` is
  std::string run_dir{};               ///< folder for figures, configuration, page and checkpoints
  Resume resume = Resume::kNever;
  /// A checkpoint, or a folder of checkpoints, to resume from instead of save_dir. With kAuto or
  /// kMust this applies to the first start; restarts resume from this run's own checkpoints.
  std::string resume_from{};
  ResumeBatch resume_batch = ResumeBatch::kPerRank;
  OnSignal on_signal = OnSignal::kSaveAndExit;
  /// Other choices of the program, for run.json, TensorBoard and `argosy runs compare`:
  /// {{"dropout", "0.3"}}.
  std::map<std::string, std::string> hyperparameters{};
};

struct EvaluateOptions {
  int64_t batch_size = 1;  ///< per rank; not with a loader
  int64_t log_freq = 10;
  int verbose = 2;
  int num_workers = 0;  ///< not with a loader
  std::vector<AnyCallback> callbacks{};
  std::optional<int64_t> num_iters{};  ///< only so many batches of each rank
};

struct PredictOptions {
  int64_t batch_size = 1;  ///< per rank; not with a loader
  int verbose = 1;
  int num_workers = 0;  ///< not with a loader
  std::vector<AnyCallback> callbacks{};
};

/// Why fit() ended.
enum class Ended {
  kFinished,   ///< after all epochs, or num_iters
  kStopped,    ///< stop() or stop_training() was called
  kPreempted,  ///< a signal came; a checkpoint was saved to resume from
};

/// The result of fit().
struct History {
  std::vector<Logs> epochs{};  ///< figures of each epoch of this call and its evaluation
  Ended ended = Ended::kFinished;
  std::string reason{};      ///< the reason given to stop()
  bool interrupted = false;  ///< kPreempted by a SIGINT to all ranks
  int64_t steps = 0;         ///< updates since the beginning of training
};

}  // namespace argosy::train
