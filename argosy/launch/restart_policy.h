#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "argosy/launch/report.h"

namespace argosy::launch {

/// Decides whether all ranks start again after a failure, and when. It touches no process and no
/// clock, so tests need neither.
///
/// A rank that exits with kResumeExitCode was told to stop and is not restarted. Usage errors (exit
/// codes 2, 126, 127) would repeat and are restarted only with UsageErrors::kRestart. The first
/// restart comes at once; while ranks fail within `kQuick` of their start, each further one waits
/// twice as long as the one before, from 1 s to `kLongest`.
class RestartPolicy final {
 public:
  static constexpr std::chrono::seconds kQuick{10};
  static constexpr std::chrono::milliseconds kLongest{30'000};

  enum class UsageErrors { kEndTheJob, kRestart };

  /// Grants at most `most` restarts.
  RestartPolicy(int most, UsageErrors usage_errors) : most_(most), usage_errors_(usage_errors) {}

  /// Returns how long to wait before the restart after `first`; nullopt: no restart.
  [[nodiscard]] std::optional<std::chrono::milliseconds> next(const RankEnd& first);
  /// Number of restarts that next() has granted.
  [[nodiscard]] int count() const { return count_; }
  /// Returns the last words of the report, after next(): "restart 1 of 3 in 2.0 s", "exit code 2,
  /// not restarted: …", "exit code 137 after 3 restarts".
  [[nodiscard]] std::string describe(const RankEnd& first,
                                     std::optional<std::chrono::milliseconds> wait) const;

 private:
  [[nodiscard]] bool usage_error(const RankEnd& end) const;

  int most_;
  UsageErrors usage_errors_;
  int count_ = 0;
  int quick_ = 0;  ///< failures in a row soon after their start
};

}  // namespace argosy::launch
