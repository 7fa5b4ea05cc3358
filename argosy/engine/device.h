#pragma once

#include <c10/core/Device.h>

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// Where a module lies: the device of the first parameter that it registers, else of its first
/// buffer, else the CPU. Cost: no walk over the whole module unless it has no parameters.
[[nodiscard]] c10::Device device_of(const torch::nn::Module& module);

}  // namespace argosy::engine
