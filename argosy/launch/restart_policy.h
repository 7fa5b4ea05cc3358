#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "argosy/launch/report.h"

namespace argosy::launch {

/// Decides whether all ranks start again after a failure, and when. Knows no processes and no
/// clock.
///
/// A rank that leaves with kResumeExitCode was told to stop and is not started again. Usage errors
/// (exit codes 2, 126, 127) would come again and are not tried again, unless asked
/// for. The first restart comes at once; while ranks fail within `kQuick` of their start, each
/// further one waits twice as long as the one before, from 1 s to `kLongest`.
class RestartPolicy final {
 public:
  static constexpr std::chrono::seconds kQuick{10};
  static constexpr std::chrono::milliseconds kLongest{30'000};

  RestartPolicy(int most, bool usage_errors_too)
      : most_(most), usage_errors_too_(usage_errors_too) {}

  /// How long to wait before the restart after `first`; nullopt: none.
  [[nodiscard]] std::optional<std::chrono::milliseconds> next(const RankEnd& first);
  /// Restarts that next() has granted.
  [[nodiscard]] int count() const { return count_; }
  /// What the report says at its end, after next(): "restart 1 of 3 in 2.0 s", "exit code 2, not
  /// restarted: …", "exit code 137 after 3 restarts".
  [[nodiscard]] std::string describe(const RankEnd& first,
                                     std::optional<std::chrono::milliseconds> wait) const;

 private:
  [[nodiscard]] bool usage_error(const RankEnd& end) const;

  int most_;
  bool usage_errors_too_;
  int count_ = 0;
  int quick_ = 0;  ///< failures in a row soon after their start
};

}  // namespace argosy::launch
