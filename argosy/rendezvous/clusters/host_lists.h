#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argosy::rendezvous {

/// Expands "gpu[001-003,7],login1" to gpu001, gpu002, gpu003, gpu7, login1. Source: Slurm's host
/// lists.
/// Errors: ConfigError when the list is malformed.
[[nodiscard]] std::vector<std::string> expand_hosts(std::string_view list);

/// Expands "2(x3),1" to 2, 2, 2, 1. Source: SLURM_TASKS_PER_NODE.
/// Errors: ConfigError when the list is malformed.
[[nodiscard]] std::vector<int> expand_counts(std::string_view list);

}  // namespace argosy::rendezvous
