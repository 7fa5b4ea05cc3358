#pragma once

#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// What of this machine the launcher shares out among the ranks.
struct Node {
  int cores = 1;        ///< usable by this process: affinity and cgroup quota
  int gpus = 0;         ///< visible to it
  bool avx512 = false;  ///< see rank_environment() on OPENBLAS_CORETYPE
};

[[nodiscard]] Node this_node();

/// NVIDIA GPUs by the driver's device files under `dev` ("/dev") or, where those are not made yet,
/// its entries under `proc` ("/proc/driver/nvidia/gpus"); narrowed by CUDA_VISIBLE_DEVICES, of
/// which entries count up to the first that names no GPU. No CUDA library is loaded.
[[nodiscard]] int count_gpus(const std::string& dev,
                             const std::string& proc,
                             const std::optional<std::string>& cuda_visible_devices);

/// `wanted` (--gpus) on a machine with `node`'s GPUs and this CUDA_VISIBLE_DEVICES. Returns a
/// warning where no NVIDIA GPU is visible at all: what the numbers mean is then the program's
/// business, be it one for ROCm or for the CPU. "": all are there.
/// Errors: UsageError: no such GPU, or one that CUDA_VISIBLE_DEVICES hides.
[[nodiscard]] std::string check_gpus(const std::vector<int>& wanted,
                                     const Node& node,
                                     const std::optional<std::string>& cuda_visible_devices);

/// Ranks that `--nproc_per_node request` means on `node`.
/// Errors: UsageError: no number from 1 to 4096, no known word, or "gpu" where there is none.
[[nodiscard]] int processes_per_node(const std::string& request, const Node& node);

}  // namespace argosy::launch
