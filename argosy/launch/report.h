#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/error_file.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {

/// The end of one rank, in the order in which the launcher saw them.
struct RankEnd {
  int rank = -1;
  pid_t pid = 0;
  os::Exit exit{};
  std::chrono::steady_clock::time_point at{};
  int64_t at_us = 0;  ///< the same, in microseconds since 1970; 0: not known
  std::chrono::steady_clock::duration ran{};
  std::string host{};  ///< where it ran; empty: a job of one node
  /// Ended by SIGKILL: was the kernel's out-of-memory killer at work on the machine since the ranks
  /// started? nullopt: the kernel does not say.
  std::optional<bool> out_of_memory{};
  std::string hung{};  ///< it stood still and was ended for that: "30.0 s (last: …)"; empty: not so
  /// It was stopped, and ended for that: "stopped by SIGSTOP"; `hung` says for how long.
  std::string stopped{};
  /// The exception that nobody caught: "std::runtime_error: my file is missing"; empty: none.
  std::string threw{};
  /// It still ran when the launcher sent it a signal: a consequence, never the cause.
  bool asked_to_stop = false;
};

/// Whether the rank has saved where it is and goes on when the same command runs again.
[[nodiscard]] bool asks_to_resume(const RankEnd& end);
/// Whether some do, and the others ended well: so does the job.
[[nodiscard]] bool ask_to_resume(const std::vector<RankEnd>& ends);
/// The last line of a job that does.
/// What the launcher then ends with: as after Ctrl-C where that is what stopped it, for a loop
/// around it is to end too; else kResumeExitCode.
[[nodiscard]] int resumable_code(std::optional<int> stopped_by);
[[nodiscard]] std::string render_resumable(int exit_code);

/// Which of the ranks that failed within one turn of the launcher's loop is the cause? An index
/// into `failed`, which is not empty and in the order of their deaths.
///
/// The first that stood still; else the first that a signal ended, SIGABRT aside, for exit codes
/// and aborts are how programs react to the loss of a peer, and a peer's connections end a moment
/// before itself; else the first of all.
[[nodiscard]] size_t root_cause(const std::vector<RankEnd>& failed);

/// "rank 3 (pid 4127) was killed by SIGKILL (often the out-of-memory killer) after 14 min 02 s",
/// "rank 3 (pid 4127) exited with code 1 after 0.3 s".
[[nodiscard]] std::string describe(const RankEnd& end);

/// A line for each node whose launcher is gone: "node 1 (gpu02, 10.0.0.2)".
[[nodiscard]] std::string render_lost(const std::vector<std::string>& nodes);

/// What the user reads at the end about a failed job.
struct FailureReport {
  RankEnd first{};
  std::vector<std::string> last_lines{};
  std::optional<ErrorNote> error{};  ///< what the rank itself said
  std::string log_path{};            ///< empty: no file
  std::vector<RankEnd> others{};     ///< all other ends, in order
  /// The last lines of all ranks are the same and were said just before the end; the user has just
  /// read them once for each. They stand for the report's own lines only where
  /// all_failed_by_themselves().
  bool same_words = false;
  std::string host{};      ///< where the first one ran; "": not known
  std::string program{};   ///< as it may be shown; "": not known
  std::string what_now{};  ///< "exit code 137", "restart 1 of 3 now"
};

/// Has every rank ended by an exit code of its own other than 0? Not where a signal ended it, nor
/// where the launcher stopped it: then the same words say nothing about why. One that was asked to
/// stop while it was ending with the first one's code counts as one that failed.
[[nodiscard]] bool all_failed_by_themselves(const FailureReport& report);

/// A line without the time that our log puts before it: equal for ranks that say the same.
[[nodiscard]] std::string_view without_time(std::string_view line);

/// Several lines, each starting with "[launch]" or, the rank's own, with "  | ".
[[nodiscard]] std::string render(const FailureReport& report);

/// What the user reads at the end of a job that the launcher was told to stop by `signal`: who
/// ended neither well nor by that signal nor by the SIGKILL that follows it, be it as a shell's
/// code (128 + the signal). "": nobody.
[[nodiscard]] std::string render_unexpected(int signal, const std::vector<RankEnd>& ends);

/// The last word on such a job: "[launch] stopped by SIGINT; exit code 130".
[[nodiscard]] std::string render_stopped(int signal);

/// Microseconds since 1970 as local time: "2026-11-20 05:44:02.123456".
[[nodiscard]] std::string time_text(int64_t at_us);

}  // namespace argosy::launch
