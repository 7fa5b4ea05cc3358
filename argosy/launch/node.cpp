#include "argosy/launch/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/cpu.h"

namespace argosy::launch {
namespace {

constexpr int kMostRanks = 4096;

/// Where GPUs were looked for.
constexpr const char* kLookedAt =
    "looked at /dev/nvidia*, /dev/kfd and /dev/dri, which this process must be able to open, and "
    "at "
    "what CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES leave";

}  // namespace

Node this_node() {
  const os::Cpu cpu = os::usable_cpu();
  os::Gpus gpus = os::find_gpus();
  const int visible = static_cast<int>(gpus.visible.size());
  return {cpu.cores, visible, cpu.avx2, cpu.avx512, std::move(gpus)};
}

std::string check_gpus(const std::vector<int>& wanted, const os::Gpus& gpus) {
  std::vector<int64_t> listed;
  for (const std::string& entry : strings::split(gpus.list.value_or(""), ',')) {
    if (const std::optional<int64_t> index = strings::parse_int(strings::trim(entry))) {
      listed.push_back(*index);
    }
  }
  for (const int gpu : wanted) {
    // Names ("GPU-5a…") cannot be compared with numbers; the program will say.
    if (!listed.empty() && std::ranges::count(listed, gpu) == 0) {
      throw UsageError(
          "launch.options",
          fmt::format("--gpus: GPU {} is hidden by {}={}", gpu, gpus.list_from, *gpus.list));
    }
    if (listed.empty() && !gpus.list && !gpus.all.empty() && gpu >= std::ssize(gpus.all)) {
      throw UsageError(
          "launch.options",
          fmt::format("--gpus: there is no GPU {}: this machine has {}", gpu, gpus.all.size()));
    }
  }
  return wanted.empty() || !gpus.visible.empty()
             ? ""
             : fmt::format(
                   "--gpus: no GPU is visible here ({}). One rank is started for each "
                   "number all the same, with CUDA_VISIBLE_DEVICES={}",
                   kLookedAt,
                   fmt::join(wanted, ","));
}

int processes_per_node(const std::string& request, const Node& node) {
  if (request == "cpu") {
    return node.cores;
  }
  if (request == "auto") {
    return node.gpus > 0 ? node.gpus : node.cores;
  }
  if (request == "gpu") {
    if (node.gpus == 0) {
      throw UsageError(
          "launch.options",
          fmt::format("--nproc_per_node gpu: no GPU is visible ({}). Use cpu, auto or a number.",
                      kLookedAt));
    }
    return node.gpus;
  }
  const std::optional<int64_t> number = strings::parse_int(request);
  if (!number || *number < 1 || *number > kMostRanks) {
    throw UsageError("launch.options",
                     fmt::format("--nproc_per_node: expected a number from 1 to {}, auto, cpu or "
                                 "gpu, got \"{}\"",
                                 kMostRanks,
                                 request));
  }
  return static_cast<int>(*number);
}

}  // namespace argosy::launch
