#pragma once

#include <string>
#include <vector>

#include "argosy/os/gpus.h"

namespace argosy::launch {

/// The parts of this machine that the launcher divides among the ranks.
struct Node {
  int cores = 1;        ///< cores that this process may use, by affinity and cgroup quota
  int gpus = 0;         ///< GPUs that this process sees
  bool avx2 = false;    ///< AVX2 with FMA
  bool avx512 = false;  ///< see rank_environment() on OPENBLAS_CORETYPE
  os::Gpus found{};     ///< all that the kernel tells of its GPUs
};

[[nodiscard]] Node this_node();

/// Checks `wanted` (--gpus) against a machine's GPUs. Returns "" when all are there. Returns a
/// warning when none is visible at all: the program, perhaps one for the CPU, then decides what the
/// numbers mean. Errors: UsageError when a GPU does not exist or is not on the list of the
/// environment.
[[nodiscard]] std::string check_gpus(const std::vector<int>& wanted, const os::Gpus& gpus);

/// Returns how many ranks `--nproc_per_node request` means on `node`.
/// Errors: UsageError when it is neither a number from 1 to 4096 nor a known word, or "gpu" when
/// there is no GPU.
[[nodiscard]] int processes_per_node(const std::string& request, const Node& node);

}  // namespace argosy::launch
