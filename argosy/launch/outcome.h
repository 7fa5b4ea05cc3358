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
  std::optional<int> signal{};                               ///< the job was told to stop by it
  std::optional<FailureReport> failure{};                    ///< as it was reported
  std::vector<std::string> left_behind{};                    ///< processes that nothing ended
  std::vector<std::string> lost{};                           ///< nodes whose launchers are gone
  std::optional<std::chrono::milliseconds> restart_after{};  ///< nullopt: the job is over
  std::string words{};                                       ///< the last ones on this start
  bool node_zero_lost = false;  ///< nobody says these words for the others
};

/// What a launcher knows of its own node when a start is over.
struct LocalEnd {
  int node = 0;
  std::string host{};
  std::optional<int> signal{};             ///< this launcher was told to stop by it
  std::vector<std::string> left_behind{};  ///< processes that nothing ended
  bool undying = false;                    ///< ranks among them
};

/// What comes of a start by what all launchers were told of it: every launcher comes to the same.
/// Knows no processes.
[[nodiscard]] Outcome outcome_of(const JobState& job, const JobPlan& plan, const LocalEnd& local);

/// "node 1 (gpu02, 10.0.0.2)"
[[nodiscard]] std::vector<std::string> names_of(const std::vector<int>& nodes, const JobPlan& plan);

}  // namespace argosy::launch
