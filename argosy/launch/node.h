#pragma once

#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// The parts of this machine that the launcher divides among the ranks.
struct Node {
  int cores = 1;        ///< cores that this process may use, by affinity and cgroup quota
  int gpus = 0;         ///< GPUs that this process sees
  bool avx2 = false;    ///< AVX2 with FMA
  bool avx512 = false;  ///< see rank_environment() on OPENBLAS_CORETYPE
};

[[nodiscard]] Node this_node();

/// Counts NVIDIA GPUs by the driver's device files under `dev` ("/dev"). If those do not exist yet,
/// it counts the entries under `proc` ("/proc/driver/nvidia/gpus"). CUDA_VISIBLE_DEVICES narrows
/// the count: its entries count up to the first that names no GPU. No CUDA library is loaded.
[[nodiscard]] int count_gpus(const std::string& dev,
                             const std::string& proc,
                             const std::optional<std::string>& cuda_visible_devices);

/// Checks `wanted` (--gpus) against `node`'s GPUs and this CUDA_VISIBLE_DEVICES. Returns "" when
/// all are there. Returns a warning when no NVIDIA GPU is visible at all: the program, perhaps one
/// for ROCm or for the CPU, then decides what the numbers mean.
/// Errors: UsageError when a GPU does not exist or CUDA_VISIBLE_DEVICES hides it.
[[nodiscard]] std::string check_gpus(const std::vector<int>& wanted,
                                     const Node& node,
                                     const std::optional<std::string>& cuda_visible_devices);

/// Returns how many ranks `--nproc_per_node request` means on `node`.
/// Errors: UsageError when it is neither a number from 1 to 4096 nor a known word, or "gpu" when
/// there is no GPU.
[[nodiscard]] int processes_per_node(const std::string& request, const Node& node);

}  // namespace argosy::launch
