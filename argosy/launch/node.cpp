#include "argosy/launch/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/cpu.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanks = 4096;

bool is_gpu_device(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](unsigned char c) {
           return std::isdigit(c) != 0;
         });
}

int installed_gpus(const std::string& dev, const std::string& proc) {
  std::error_code ignored;
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(dev, ignored)) {
    count += is_gpu_device(entry.path().filename()) ? 1 : 0;
  }
  if (count == 0) {
    for (const fs::directory_entry& entry : fs::directory_iterator(proc, ignored)) {
      count += entry.is_directory(ignored) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

int count_gpus(const std::string& dev,
               const std::string& proc,
               const std::optional<std::string>& cuda_visible_devices) {
  const int installed = installed_gpus(dev, proc);
  if (!cuda_visible_devices || installed == 0) {
    return installed;
  }
  int visible = 0;
  for (const std::string& entry : strings::split(*cuda_visible_devices, ',')) {
    const std::string_view name = strings::trim(entry);
    const std::optional<int64_t> index = strings::parse_int(name);
    const bool valid = index ? *index >= 0 && *index < installed : !name.empty();  // else "GPU-…"
    if (!valid) {
      break;
    }
    ++visible;
  }
  return visible;
}

Node this_node() {
  const os::Cpu cpu = os::usable_cpu();
  // Not env::get: CUDA_VISIBLE_DEVICES="" hides all GPUs, unset hides none.
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
  return {cpu.cores,
          count_gpus("/dev",
                     "/proc/driver/nvidia/gpus",
                     visible == nullptr ? std::nullopt : std::optional<std::string>(visible)),
          cpu.avx2,
          cpu.avx512};
}

std::string check_gpus(const std::vector<int>& wanted,
                       const Node& node,
                       const std::optional<std::string>& cuda_visible_devices) {
  std::vector<int64_t> visible;
  for (const std::string& entry : strings::split(cuda_visible_devices.value_or(""), ',')) {
    if (const std::optional<int64_t> index = strings::parse_int(strings::trim(entry))) {
      visible.push_back(*index);
    }
  }
  for (const int gpu : wanted) {
    // Names ("GPU-5a…") cannot be compared with numbers; the program will say.
    const bool hidden = !visible.empty() && std::ranges::count(visible, gpu) == 0;
    if (hidden) {
      throw UsageError(
          "launch.options",
          fmt::format(
              "--gpus: GPU {} is hidden by CUDA_VISIBLE_DEVICES={}", gpu, *cuda_visible_devices));
    }
    if (visible.empty() && !cuda_visible_devices && node.gpus > 0 && gpu >= node.gpus) {
      throw UsageError(
          "launch.options",
          fmt::format("--gpus: there is no GPU {}: this machine has {}", gpu, node.gpus));
    }
  }
  return wanted.empty() || node.gpus > 0
             ? ""
             : fmt::format(
                   "--gpus: no NVIDIA GPU is visible here (looked at /dev/nvidia*, "
                   "/proc/driver/nvidia and CUDA_VISIBLE_DEVICES). One rank is started for each "
                   "number all the same, with CUDA_VISIBLE_DEVICES={}, which ROCm reads too",
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
      throw UsageError("launch.options",
                       "--nproc_per_node gpu: no NVIDIA GPU is visible (looked at /dev/nvidia*, "
                       "/proc/driver/nvidia and CUDA_VISIBLE_DEVICES). Use cpu, auto or a number.");
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
