#include "argosy/engine/random_state.h"

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <ATen/Context.h>
#include <torch/nn/module.h>

#include "argosy/base/error.h"
#include "argosy/engine/seed.h"

namespace argosy::engine {
namespace {

constexpr std::string_view kPrefix = "random.";

std::vector<at::Device> devices_of(const torch::nn::Module& module) {
  std::vector<at::Device> devices;
  const auto look = [&](const at::Tensor& tensor) {
    if (tensor.defined()) {
      devices.push_back(tensor.device());
    }
  };
  for (const at::Tensor& parameter : module.parameters()) {
    look(parameter);
  }
  for (const at::Tensor& buffer : module.buffers()) {
    look(buffer);
  }
  return devices;
}

at::Tensor state_of(const at::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

bool is_here(const at::Device& device) {
  return device.is_cpu() || (device.is_cuda() && at::Context::hasCUDA() &&
                             device.index() < at::detail::getCUDAHooks().getNumGPUs());
}

}  // namespace

StateDict random_state(const torch::nn::Module& module) {
  return random_state(devices_of(module));
}

StateDict random_state(const std::vector<at::Device>& devices) {
  StateDict state;
  state.set(std::string(kPrefix) + "cpu", state_of(at::kCPU));
  std::set<at::DeviceIndex> cuda;
  for (const at::Device& device : devices) {
    if (device.is_cuda()) {
      cuda.insert(device.index());
    }
  }
  for (const at::DeviceIndex index : cuda) {
    const at::Device device(at::kCUDA, index);
    state.set(std::string(kPrefix) + device.str(), state_of(device));
  }
  return state;
}

void load_random_state(const StateDict& state) {
  put_back_random_state(state);
  keep_base_seed();
}

void put_back_random_state(const StateDict& state) {
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with(kPrefix)) {
      continue;
    }
    try {
      const at::Device device(name.substr(kPrefix.size()));
      if (is_here(device)) {
        at::Generator generator = at::globalContext().defaultGenerator(device);
        const std::lock_guard lock(generator.mutex());
        generator.set_state(tensor.contiguous());
      }
    } catch (const c10::Error& error) {
      throw CheckpointError("engine.load_random_state",
                            "this is no state of a generator: " + error.msg(),
                            {.key = name});
    }
  }
}

}  // namespace argosy::engine
