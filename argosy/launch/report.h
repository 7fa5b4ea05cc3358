#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/rank_end.h"

namespace argosy::launch {

/// Returns the exit code of a job that resumes: as after Ctrl-C if that stopped it, because a loop
/// around the launcher must end too; else kResumeExitCode.
[[nodiscard]] int resumable_code(std::optional<int> stopped_by);
/// Returns the last line of a job that resumes.
[[nodiscard]] std::string render_resumable(int exit_code);

/// Returns "rank 3 (pid 4127) was killed by SIGKILL (often the out-of-memory killer) after 14 min
/// 02 s" or "rank 3 (pid 4127) exited with code 1 after 0.3 s".
[[nodiscard]] std::string describe(const RankEnd& end);

/// Returns a line for each node whose launcher is gone, with its name: "node 1 (gpu02, 10.0.0.2)".
[[nodiscard]] std::string render_lost(const std::vector<std::string>& nodes);

/// What the user reads at the end about a failed job.
struct FailureReport {
  RankEnd first{};
  std::vector<RankEnd> others{};  ///< all other ends, in order
  /// All ranks have the same last lines, which came just before the end, and the user has just read
  /// them once for each rank. They replace the report's own lines only if
  /// all_failed_by_themselves().
  bool same_words = false;
  std::string host{};      ///< where the first one ran; "": not known
  std::string what_now{};  ///< "exit code 137", "restart 1 of 3 now"
};

/// True if every rank ended by its own exit code other than 0. False if a signal ended a rank or
/// the launcher stopped it: the same words then say nothing about why. A rank that was asked to
/// stop while it was ending with the first one's code counts as one that failed.
[[nodiscard]] bool all_failed_by_themselves(const FailureReport& report);

/// Returns a line without the time that our log puts before it. It is equal for ranks that say the
/// same.
[[nodiscard]] std::string_view without_time(std::string_view line);

/// Returns several lines. Each starts with "[launch]"; the rank's own start with "  | ".
[[nodiscard]] std::string render(const FailureReport& report);

/// Returns the last lines about a job that `signal` stopped. They name the ranks that ended neither
/// well, nor by that signal, nor by the SIGKILL that follows it. A shell's code (128 + the signal)
/// counts as the signal. "": there are no such ranks.
[[nodiscard]] std::string render_unexpected(int signal, const std::vector<RankEnd>& ends);

/// Returns the last line of such a job: "[launch] stopped by SIGINT; exit code 130".
[[nodiscard]] std::string render_stopped(int signal);

/// Returns microseconds since 1970 as local time: "2026-11-20 05:44:02.123456".
[[nodiscard]] std::string time_text(int64_t at_us);

}  // namespace argosy::launch
