#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "argosy/launch/environment.h"
#include "argosy/launch/log_layout.h"
#include "argosy/launch/nodes/job_plan.h"
#include "argosy/launch/options.h"
#include "argosy/launch/options/program.h"
#include "argosy/os/socket.h"

namespace argosy::launch {

/// A job before its first process: names, secrets, folders and ports, all of them ours from here
/// on.
struct Job {
  JobDescription description{};
  Program program{};
  std::vector<os::HeldPort> held_ports{};
  std::vector<uint16_t> endpoint_ports{};  ///< of this node's ranks
  LogPlan logs{};                          ///< paths as the user wrote them
};

/// As the only node of its job; see take_place(). A --master_port that somebody has is waited for,
/// for some seconds, in which `look_up` may throw to give up; a dry run takes no port. Errors:
/// UsageError (nproc_per_node), ConfigError (log folder, ports).
[[nodiscard]] Job prepare_job(
    const LaunchOptions& options, const Node& node, const std::function<void()>& look_up = [] {});

/// Where the files of the run go, and makes the folder where that was asked for; again, once the
/// run has the name that all nodes know it by. Errors: ConfigError (folder).
void settle_logs(const LaunchOptions& options, Job& job);

/// Makes it the job of several nodes that `plan` says, seen from node `node`.
void take_place(Job& job, const JobPlan& plan, int node, const std::string& store);

}  // namespace argosy::launch
