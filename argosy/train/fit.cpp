#include "argosy/train/fit.h"

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
#include "argosy/train/fit_loop.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {
namespace {

/// A loader has its own options, and an evaluation needs a set: those of fit() must not seem to
/// act.
void check_feeds(const FitOptions& options, const Feed& train, const Feed* eval) {
  const bool reads_eval = eval != nullptr && eval->dealing().has_value();
  const char* const instead =
      eval == nullptr ? "give fit() one, or leave it out" : "give it to the loader";
  ARGOSY_CHECK(reads_eval || !options.data.eval_batch_size.has_value(),
               "train.fit",
               "data.eval_batch_size is set, and there is no evaluation set that fit() reads: {}",
               instead);
  ARGOSY_CHECK(eval != nullptr || options.eval_freq == 1,
               "train.fit",
               "eval_freq is set, and there is no evaluation set: {}",
               instead);
  if (train.dealing().has_value()) {
    return;
  }
  const auto check = [](bool unset, const char* field) {
    ARGOSY_CHECK(
        unset,
        "train.fit",
        "{} is set, and the training batches come from a loader: give it to the loader, or "
        "give fit() the data set",
        field);
  };
  check(options.data.shuffle, "data.shuffle = false");
  check(!options.data.drop_last, "data.drop_last");
  const bool may_join = options.resume != Resume::kNever;  // then it seeds ranks that join
  check(reads_eval || may_join || options.data.seed == 0, "data.seed");
  check(reads_eval || options.batch_size == 1, "batch_size");
  check(reads_eval || options.num_workers == 0, "num_workers");
  check(options.checkpoint.resume_batch == ResumeBatch::kPerRank,
        "checkpoint.resume_batch = kGlobal");
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
    fmt::print(
        "{}: saved a checkpoint at step {}. Run the same command{} to resume{}\n",
        history.reason,
        history.steps,
        options.resume == Resume::kNever ? " with resume auto (argosy train: --resume auto)" : "",
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

History fit(
    Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options, FitStart& start) {
  if (options.training_step != nullptr) {
    core.check_has_optimizer("train.fit");
    if (eval != nullptr) {  // not after an epoch
      core.check_prepared("train.fit");
    }
  } else {
    core.check_optimizer("train.fit");
  }
  check_feeds(options, train, eval);
  ARGOSY_CHECK(options.accumulate_grad_batches == 1 || train.batches().has_value(),
               "train.fit",
               "accumulate_grad_batches over a stream of unknown length: nobody knows which batch "
               "is the last. Say how many there are: StreamShards::batches.");
  check_feed(train, core.group, FeedOf::kTraining);
  ARGOSY_CHECK(train.batches() != std::optional<int64_t>(0),
               "train.fit",
               "the training set, of {} samples, gives a rank no batch. Take more samples, or a "
               "smaller batch_size where drop_last leaves out a short one.",
               train.samples());
  std::optional<FitLoop> loop(std::in_place, core, model, train, eval, options, start);
  History history = loop->run();
  const int signal = loop->signal();
  loop.reset();
  if (history.ended == Ended::kPreempted &&
      options.checkpoint.on_signal == OnSignal::kSaveAndExit) {
    leave_for_resume(history, options, core.group);
  }
  if (signal != 0 && history.ended != Ended::kPreempted) {
    ::raise(signal);  // it came when all was done and saved: it is the program's again
  }
  return history;
}

}  // namespace argosy::train::detail
