#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/rank_end.h"

namespace argosy::launch {

/// What the launcher then ends with: as after Ctrl-C where that is what stopped it, for a loop
/// around it is to end too; else kResumeExitCode.
[[nodiscard]] int resumable_code(std::optional<int> stopped_by);
/// The last line of a job that resumes.
[[nodiscard]] std::string render_resumable(int exit_code);

/// "rank 3 (pid 4127) was killed by SIGKILL (often the out-of-memory killer) after 14 min 02 s",
/// "rank 3 (pid 4127) exited with code 1 after 0.3 s".
[[nodiscard]] std::string describe(const RankEnd& end);

/// A line for each node whose launcher is gone: "node 1 (gpu02, 10.0.0.2)".
[[nodiscard]] std::string render_lost(const std::vector<std::string>& nodes);

/// What the user reads at the end about a failed job.
struct FailureReport {
  RankEnd first{};
  std::vector<RankEnd> others{};  ///< all other ends, in order
  /// The last lines of all ranks are the same and were said just before the end; the user has just
  /// read them once for each. They stand for the report's own lines only where
  /// all_failed_by_themselves().
  bool same_words = false;
  std::string host{};      ///< where the first one ran; "": not known
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
