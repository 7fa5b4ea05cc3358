#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/rank_output.h"
#include "argosy/launch/report.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {

/// One running rank: its process, its process group and its output. Passive, like os::Subprocess:
/// the attempt's loop calls it when poll() reports an event.
class Rank final {
 public:
  struct Start {
    int number = 0;
    std::vector<std::string> command{};
    std::vector<std::string> env{};
    int stdin_fd = -1;
    int guard_fd = -1;  ///< see Guard::pid_fd()
    int keep_fd = -1;   ///< see SubprocessOptions
    std::vector<int> cpus{};
    rlim_t open_files = 0;  ///< see SubprocessOptions
    RankOutput::Start output{};
  };
  /// Starts the rank. Errors: those of Subprocess::spawn.
  [[nodiscard]] static Result<Rank> start(const Start& start);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] bool running() const { return process_.running(); }
  [[nodiscard]] int pidfd() const { return process_.pidfd(); }
  [[nodiscard]] RankOutput& output() { return output_; }
  [[nodiscard]] const RankOutput& output() const { return output_; }

  /// Returns how the rank ended, once it has. See ended_at() for the time.
  [[nodiscard]] std::optional<RankEnd> reap();
  /// When the rank ended; for a stopped rank, since when it was stopped.
  [[nodiscard]] std::chrono::steady_clock::time_point ended_at() const { return ended_at_; }
  /// True while a process of the rank's group lives.
  [[nodiscard]] bool group_alive();
  /// Sends `signal` to the group. If the rank still runs, its end then counts as asked for.
  void signal_group(int signal);
  void signal_process(int signal) { (void)process_.signal(signal); }
  void abandon() { process_.abandon(); }
  /// Ends the whole group because the rank hangs, as `what` describes. The end counts as the rank's
  /// own failure. It signals the group because the rank may be a shell around the program.
  void end_hung(std::string what);
  void kill_hung();
  /// Kills a rank that is stopped, as `how` describes, since `since`, and silent for `silence`.
  /// Returns the end to report; reap() no longer returns one.
  [[nodiscard]] RankEnd end_stopped(std::string how,
                                    std::string silence,
                                    std::chrono::steady_clock::time_point since);
  /// Sends SIGTSTP or SIGCONT to the whole group.
  void suspend_or_resume(int signal) const;
  [[nodiscard]] bool hung() const { return !hung_.empty(); }

 private:
  Rank(int number, os::Subprocess process, RankOutput output);

  int number_;
  os::Subprocess process_;
  RankOutput output_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point ended_at_{};
  bool group_gone_ = false;
  bool reaped_ = false;
  bool asked_to_stop_ = false;
  std::string hung_{};
  bool end_is_told_ = false;  ///< by end_stopped()
};

}  // namespace argosy::launch
