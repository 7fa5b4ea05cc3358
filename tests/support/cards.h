#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace argosy::test {

/// Whether there are GPUs, without asking CUDA: a process that has asked it cannot fork.
[[nodiscard]] inline bool has_cards() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible != nullptr && (*visible == '\0' || *visible == '-');
  return !hidden && c10::impl::hasDeviceGuardImpl(c10::kCUDA) &&
         std::filesystem::exists("/dev/nvidiactl");
}

/// The GPU of a rank that is a process. Where several ranks share one they are told apart as hosts:
/// NCCL takes one rank on each card of a host, and connects hosts by TCP.
[[nodiscard]] inline c10::Device card_over_nccl(int rank, int ranks) {
  const int cards = c10::impl::getDeviceGuardImpl(c10::kCUDA)->deviceCount();
  if (cards == 0) {
    throw std::runtime_error("there is a driver, and CUDA sees no device");
  }
  if (cards < ranks) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads
    ::setenv("NCCL_HOSTID", ("rank-" + std::to_string(rank)).c_str(), 1);
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(rank % cards)};
}

}  // namespace argosy::test
