#pragma once

#include <string>
#include <vector>

namespace argosy::launch {

/// One line of a host file.
struct HostLine {
  std::string host{};  ///< "gpu01", "user@gpu01"
  int slots = 0;       ///< ranks on this host; 0: not given
  /// Returns the host without the user, which is where other nodes reach it.
  [[nodiscard]] std::string address() const { return host.substr(host.find('@') + 1); }
};

/// Reads a host file. Each line is "gpu01 slots=4" (OpenMPI, DeepSpeed), "gpu01:4" (MPICH) or
/// "gpu01"; # begins a comment.
/// Errors: UsageError naming file and line; also when there is no host, or when a host stands there
/// twice.
[[nodiscard]] std::vector<HostLine> read_hostfile(const std::string& path);

}  // namespace argosy::launch
