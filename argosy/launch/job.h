#pragma once

#include <string>
#include <vector>

#include "argosy/launch/environment.h"
#include "argosy/launch/log_layout.h"
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
  LogPlan logs{};  ///< paths as the user wrote them
};

/// Errors: UsageError (nproc_per_node), ConfigError (log folder, ports).
[[nodiscard]] Job prepare_job(const LaunchOptions& options, const Node& node);

/// `bytes` random bytes from the kernel, in hexadecimal.
[[nodiscard]] std::string random_hex(size_t bytes);

}  // namespace argosy::launch
