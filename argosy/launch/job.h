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

/// A job before its first process. From here on its names, secrets, folders and ports are ours.
struct Job {
  JobDescription description{};
  Program program{};
  std::vector<os::HeldPort> held_ports{};
  std::vector<uint16_t> endpoint_ports{};  ///< ports of this node's ranks
  LogPlan logs{};                          ///< with the paths as the user wrote them
};

/// Prepares a job of this node alone; take_place() makes it a job of several. If somebody holds
/// --master_port, it waits for some seconds; `look_up` may throw meanwhile to give up. A dry run
/// takes no port.
/// Errors: UsageError (nproc_per_node), ConfigError (log folder, ports).
[[nodiscard]] Job prepare_job(
    const LaunchOptions& options, const Node& node, const std::function<void()>& look_up = [] {});

/// Settles where the files of the run go, and makes the folder if the user asked for it. Call it
/// again once the run has the name that all nodes know. Errors: ConfigError (folder).
void settle_logs(const LaunchOptions& options, Job& job);

/// Makes `job` the job of several nodes in `plan`, as node `node` sees it.
void take_place(Job& job, const JobPlan& plan, int node, const std::string& store);

}  // namespace argosy::launch
