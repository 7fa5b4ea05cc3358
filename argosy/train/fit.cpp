#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/train/core.h"
#include "argosy/train/fit_loop.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {
namespace {

void check_options(const FitOptions& options, const Feed& train) {
  ARGOSY_CHECK(options.epochs > 0, "train.fit", "epochs must be positive, got {}", options.epochs);
  ARGOSY_CHECK(options.eval_freq > 0 && options.log_freq > 0 && options.save_freq > 0,
               "train.fit",
               "eval_freq, log_freq and save_freq must be positive, got {}, {} and {}",
               options.eval_freq,
               options.log_freq,
               options.save_freq);
  ARGOSY_CHECK(options.save_steps >= 0 && options.keep_last >= 0,
               "train.fit",
               "save_steps and keep_last must not be negative, got {} and {}",
               options.save_steps,
               options.keep_last);
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

/// The process ends here, on all ranks together, with a code that says: start me again. What main()
/// would do next is for a training that is done. Nothing is lost: callbacks have ended.
[[noreturn]] void leave_for_resume(const History& history,
                                   const FitOptions& options,
                                   const comm::Group& group) {
  for (const int again : {SIGTERM, SIGUSR1}) {  // the launcher's, should another rank leave first
    ::signal(again, SIG_IGN);
  }
  if (group.rank() == 0) {
    fmt::print("{}: saved a checkpoint at step {}. The same command goes on from there{}{}\n",
               history.reason,
               history.steps,
               options.resume == Resume::kNever ? ", with resume \"auto\"" : "",
               history.interrupted ? "" : fmt::format(" (exit code {})", kResumeExitCode));
  }
  std::fflush(nullptr);
  if (group.size() > 1) {
    try {
      comm::barrier(group);
    } catch (const std::exception& error) {  // all is saved whatever becomes of another rank
      log::warn("[train.fit] {}", error.what());
    }
  }
  if (history.interrupted) {
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);
  }
  std::_Exit(kResumeExitCode);
}

}  // namespace

History fit(Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options) {
  core.check_optimizer("train.fit");
  check_options(options, train);
  check_feed(train, core.group, true);
  ARGOSY_CHECK(train.batches() != std::optional<int64_t>(0),
               "train.fit",
               "the training set, of {} samples, gives a rank no batch. Take more samples, or a "
               "smaller batch_size where drop_last leaves out a short one.",
               train.samples());
  std::optional<FitLoop> loop(std::in_place, core, model, train, eval, options);
  History history = loop->run();
  const int signal = loop->signal();
  loop.reset();
  if (history.ended == Ended::kPreempted && options.on_signal == OnSignal::kSaveAndExit) {
    leave_for_resume(history, options, core.group);
  }
  if (signal != 0 && history.ended != Ended::kPreempted) {
    ::raise(signal);  // it came when all was done and saved: it is the program's again
  }
  return history;
}

}  // namespace argosy::train::detail
