#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/nodes/job_log.h"
#include "argosy/launch/nodes/job_plan.h"
#include "argosy/launch/report.h"

namespace argosy::launch {

/// How one start of all ranks ended.
struct Outcome {
  int exit_code = 0;
  std::optional<int> signal{};                               ///< the signal that stopped the job
  std::optional<FailureReport> failure{};                    ///< the failure as reported
  std::vector<std::string> left_behind{};                    ///< processes that did not end
  std::vector<std::string> lost{};                           ///< nodes whose launchers are lost
  std::optional<std::chrono::milliseconds> restart_after{};  ///< nullopt: the job is over
  std::string words{};          ///< the last lines to print about this start
  bool node_zero_lost = false;  ///< no other launcher prints these words
};

/// What a launcher knows about its own node when a start is over.
struct LocalEnd {
  int node = 0;
  std::string host{};
  std::optional<int> signal{};             ///< the signal that told this launcher to stop
  std::vector<std::string> left_behind{};  ///< processes that nothing ended
  bool undying = false;                    ///< ranks among them
};

/// Returns what follows a start, from what all launchers were told. Every launcher comes to the
/// same result. A pure function: it touches no process.
[[nodiscard]] Outcome outcome_of(const JobState& job, const JobPlan& plan, const LocalEnd& local);

/// Returns names such as "node 1 (gpu02, 10.0.0.2)".
[[nodiscard]] std::vector<std::string> names_of(const std::vector<int>& nodes, const JobPlan& plan);

}  // namespace argosy::launch
