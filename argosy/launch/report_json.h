#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/launch/report.h"

namespace argosy::launch {

/// How a job ended, for programs. See docs/guides/launch.md for the form.
struct JobEnd {
  std::string run_id{};
  std::string job_id{};
  std::vector<std::string> program{};
  int ranks = 0;  ///< ranks of the whole job
  int nodes = 1;
  int restarts = 0;
  int exit_code = 0;
  std::optional<int> interrupted_by{};     ///< signal
  std::optional<FailureReport> failure{};  ///< the failure of the last start
  std::vector<std::string> lost{};         ///< nodes whose launchers are gone
  std::vector<std::string> left_behind{};  ///< processes on this node that nothing ended
  double seconds = 0;
};

[[nodiscard]] std::string to_json(const JobEnd& end);

/// Writes the report to `path` whole or not at all, by way of a file beside it (or beside what a
/// link leads to). If `path` is no regular file (a pipe that is being read) or lies in /dev or
/// /proc (/dev/stdout), it appends.
[[nodiscard]] Status write_json(const JobEnd& end, const std::string& path);

/// Fails if `path` cannot be written, so that the user learns it early.
[[nodiscard]] Status check_json(const std::string& path);

/// Calls check_json() and removes a former report.
[[nodiscard]] Status prepare_json(const std::string& path);

}  // namespace argosy::launch
