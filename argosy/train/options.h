#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/exit_codes.h"
#include "argosy/train/callback.h"
#include "argosy/train/feed.h"
#include "argosy/train/logs.h"

namespace argosy::train {

class TrainingStep;
using TrainingStepFunction = std::function<at::Tensor(TrainingStep& step)>;

/// Selects if fit() resumes from a checkpoint of an earlier run.
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

/// How fit() reads a data set. With a loader in its place these are an error: a loader has its own.
struct FitDataOptions {
  std::optional<int64_t> eval_batch_size{};  ///< of the evaluation set; unset: batch_size
  bool shuffle = true;
  bool drop_last = false;  ///< leaves out an epoch's last batch if it is short
  uint64_t seed = 0;  ///< of the order, the augmentation, and ranks that join a resumed training
};

/// Where and when fit() saves checkpoints, and how it resumes from them.
struct FitCheckpointOptions {
  /// Folder of the checkpoints. Empty: `checkpoints` in run_dir; without a run_dir fit() saves
  /// none. A ModelCheckpoint for this folder in `callbacks` replaces the next three options.
  std::string dir{};
  int64_t every_epochs = 1;
  int64_t every_steps = 0;  ///< also after every so many updates; 0: never
  int64_t keep_last = 3;    ///< number of newest checkpoints that stay; 0: all
  /// A checkpoint, or a folder of checkpoints, to resume from instead of `dir`. With kAuto or
  /// kMust this applies to the first start; restarts resume from this run's own checkpoints.
  std::string resume_from{};
  ResumeBatch resume_batch = ResumeBatch::kPerRank;
  OnSignal on_signal = OnSignal::kSaveAndExit;
};

/// What fit() prints and records.
struct FitLogOptions {
  /// 0: silent; 1: a bar; 2: a line every `freq` batches; 3: with the loader's times.
  int verbose = 2;
  int64_t freq = 10;  ///< batches between two lines of progress
  /// Names of labels 0, 1, …, shown below the pictures of evaluations. Empty: those of the data
  /// set's classes(), or numbers without it.
  std::vector<std::string> class_names{};
  /// Other choices of the program, for run.json, TensorBoard and `argosy runs compare`:
  /// {{"dropout", "0.3"}}.
  std::map<std::string, std::string> hyperparameters{};
};

/// Options of fit(). C++ asks for designated options in this order, and the groups come last:
///
///     model.fit(train, valid, {.batch_size = 16, .epochs = 10, .num_workers = 2,
///                              .run_dir = "runs/a", .resume = train::Resume::kAuto,
///                              .data = {.seed = 42}, .log = {.verbose = 1}});
struct FitOptions {
  int64_t batch_size = 1;  ///< samples of a batch of a virtual rank; a loader has its own
  int64_t epochs = 1;
  int num_workers = 0;  ///< threads that read a data set; a loader has its own
  /// The number of virtual ranks: a training has the same bits on any number of processes.
  /// 0: the strategy's, else that of the checkpoint from which it resumes, else one for each
  /// process. Another number than the checkpoint's is a new recipe, and deals the samples anew. So
  /// does a training for which nobody asked for a number, on more processes than it began with.
  int64_t virtual_ranks = 0;
  std::string run_dir{};  ///< folder for figures, configuration, page and checkpoints
  Resume resume = Resume::kNever;
  std::vector<AnyCallback> callbacks{};
  std::optional<int64_t> num_iters{};  ///< ends after so many updates, whatever `epochs` is
  /// Number of batches whose gradients are averaged for an update. A shorter rest of an epoch is an
  /// update too.
  int64_t accumulate_grad_batches = 1;
  int64_t eval_freq = 1;  ///< evaluates after every so many epochs, and the last
  /// Returns the loss of a batch in the place of the network's forward and the loss of prepare().
  /// See TrainingStep.
  TrainingStepFunction training_step{};
  FitDataOptions data{};
  FitCheckpointOptions checkpoint{};
  FitLogOptions log{};

  /// Errors: UsageError that names the field.
  void validate() const;
};

/// Returns the number of virtual ranks with which fit() resumes a checkpoint by these options, if
/// neither they nor the strategy give one.
/// nullopt: there is no checkpoint, or its samples are dealt anew (FitOptions::virtual_ranks).
/// Collective over the job of fleet.
[[nodiscard]] std::optional<int64_t> virtual_ranks_to_resume(const FitOptions& options);

struct TrainBatchOptions {
  /// false: gradients add up on this rank alone, and the optimizer makes no step.
  bool update = true;
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
