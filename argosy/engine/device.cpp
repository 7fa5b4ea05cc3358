#include "argosy/engine/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"

namespace argosy::engine {
namespace {

constexpr const char* kWhere = "engine.device";

/// Those that libtorch trains on, the most usual first.
constexpr std::array kAccelerators{c10::kCUDA, c10::kXPU, c10::kPrivateUse1};

/// "cuda" or "gpu" for CUDA's; the CPU's and others' as libtorch calls them.
std::optional<c10::DeviceType> type_named(const std::string& name) {
  if (name == "gpu") {
    return c10::kCUDA;
  }
  for (const c10::DeviceType type :
       {c10::kCPU, kAccelerators[0], kAccelerators[1], kAccelerators[2]}) {
    if (name == c10::DeviceTypeName(type, /*lower_case=*/true)) {
      return type;
    }
  }
  return std::nullopt;
}

struct Named {
  std::optional<c10::DeviceType> type;  ///< none: "auto"
  std::optional<int64_t> index;
};

Named parse(std::string_view word) {
  if (word == "auto") {
    return {};
  }
  const std::vector<std::string> parts = strings::split(std::string(word), ':');
  const Named named{.type = type_named(parts.front()),
                    .index = parts.size() == 2 ? strings::parse_int(parts[1]) : std::nullopt};
  const bool is_whole = named.type.has_value() && parts.size() == (named.index ? 2U : 1U);
  const int64_t index = named.index.value_or(0);
  ARGOSY_CHECK(is_whole && index >= 0 && (index == 0 || named.type != c10::kCPU),
               kWhere,
               "expected cpu, cuda, cuda:<number>, gpu, gpu:<number> or auto, got \"{}\"",
               word);
  return named;
}

/// What hides devices from this process.
std::string visible_devices() {
  std::string text;
  for (const char* const name :
       {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    if (const std::optional<std::string> value = env::get(name)) {
      text += fmt::format(", {}={}", name, *value);
    }
  }
  return text;
}

constexpr const char* kSelected = "FLAGS_selected_gpus";

/// The numbers in FLAGS_selected_gpus. Empty: it is not set, or not meant for this process alone.
std::vector<int64_t> selected_gpus() {
  const auto given = [](const char* name) { return env::get(name).has_value(); };
  const bool by_paddle = given("PADDLE_LOCAL_RANK") || given("PADDLE_RANK_IN_NODE");
  const bool by_queue =
      given("SLURM_LOCALID") || given("OMPI_COMM_WORLD_LOCAL_RANK") || given("MPI_LOCALRANKID");
  const std::optional<std::string> value = env::get(kSelected);
  if (!value || given("LOCAL_RANK") || (by_queue && !by_paddle)) {
    return {};
  }
  std::vector<int64_t> numbers;
  for (const std::string& entry : strings::split(*value, ',')) {
    const std::optional<int64_t> number = strings::parse_int(strings::trim(entry));
    if (!number || *number < 0) {
      throw ConfigError(
          kWhere, fmt::format("{}={}: expected numbers of GPUs: 0, or 0,1", kSelected, *value));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

/// Which of `count` devices is this process's.
int64_t own_index(std::string_view word, int local_rank, int count) {
  const std::vector<int64_t> selected = selected_gpus();
  const int64_t own =
      selected.empty() ? local_rank
                       : selected[static_cast<size_t>(std::max(0, local_rank)) % selected.size()];
  ARGOSY_CHECK(own >= 0 || count == 1,
               kWhere,
               "\"{}\": cannot tell which of {} devices is this process's. Set LOCAL_RANK, its "
               "number on this host, or name a device",
               word,
               count);
  if (static std::atomic_flag told; own >= count && count > 1 && !told.test_and_set()) {
    log::warn("process {} of this host shares device {}: it sees {} devices{}",
              own,
              own % count,
              count,
              visible_devices());
  }
  return std::max<int64_t>(0, own) % count;
}

std::optional<c10::Device> device_of_first(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) {
      return tensor.device();
    }
  }
  return std::nullopt;
}

std::optional<c10::Device> device_of_parameters(const torch::nn::Module& module) {
  std::optional<c10::Device> found = device_of_first(module.parameters(/*recurse=*/false));
  for (const auto& child : module.children()) {
    if (found.has_value()) {
      break;
    }
    found = device_of_parameters(*child);
  }
  return found;
}

}  // namespace

c10::Device device_of(const torch::nn::Module& module) {
  if (const auto found = device_of_parameters(module)) {
    return *found;
  }
  return device_of_first(module.buffers()).value_or(c10::Device(c10::kCPU));
}

int device_count(c10::DeviceType type) {
  return c10::impl::hasDeviceGuardImpl(type)
             ? static_cast<int>(c10::impl::getDeviceGuardImpl(type)->deviceCount())
             : 0;
}

std::optional<c10::DeviceType> accelerator() {
  for (const c10::DeviceType type : kAccelerators) {
    if (device_count(type) > 0) {
      return type;
    }
  }
  return std::nullopt;
}

c10::Device find_device(std::string_view word, int local_rank) {
  const Named named = parse(word);
  const c10::DeviceType type =
      named.type.has_value() ? *named.type : accelerator().value_or(c10::kCPU);
  if (type == c10::kCPU) {
    return c10::kCPU;
  }
  const int count = device_count(type);
  const std::string name = c10::DeviceTypeName(type, /*lower_case=*/true);
  ARGOSY_CHECK(
      count > 0,
      kWhere,
      "\"{}\": this process sees no {} device{}{}; \"auto\" takes the CPU where there is none",
      word,
      name,
      visible_devices(),
      c10::impl::hasDeviceGuardImpl(type) ? ". `argosy doctor` looks for them"
                                          : ", and its libtorch is built without them");
  const int64_t index = named.index ? *named.index : own_index(word, local_rank, count);
  ARGOSY_CHECK(index < count,
               kWhere,
               "\"{}\": this process sees {} {} device{}{}, numbered from 0",
               word,
               count,
               name,
               count == 1 ? "" : "s",
               visible_devices());
  return {type, static_cast<c10::DeviceIndex>(index)};
}

void check_device_word(std::string_view word) {
  (void)parse(word);
}

void set_device(c10::Device device) {
  if (!device.is_cpu()) {
    c10::impl::getDeviceGuardImpl(device.type())->setDevice(device);
  }
}

c10::Device set_device(std::string_view word, int local_rank) {
  const c10::Device device = find_device(word, local_rank);
  set_device(device);
  return device;
}

}  // namespace argosy::engine
