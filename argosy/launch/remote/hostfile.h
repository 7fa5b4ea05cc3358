#pragma once

#include <string>
#include <vector>

namespace argosy::launch {

/// One line of a host file.
struct HostLine {
  std::string host{};  ///< "gpu01", "user@gpu01"
  int slots = 0;       ///< ranks there; 0: not said
  /// Without the user: where other nodes reach it.
  [[nodiscard]] std::string address() const { return host.substr(host.find('@') + 1); }
};

/// "gpu01 slots=4" (OpenMPI, DeepSpeed), "gpu01:4" (MPICH) or "gpu01", one a line; # begins a
/// comment. Errors: UsageError naming file and line; no host at all; one that stands there twice.
[[nodiscard]] std::vector<HostLine> read_hostfile(const std::string& path);

}  // namespace argosy::launch
